"""Complex products of other libraries' calls, made by argand where that is faster."""
