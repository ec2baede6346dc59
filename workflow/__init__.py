"""The pipeline around the kernels: studies, staging, verification, products, tables, figures."""
