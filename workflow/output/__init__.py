"""What people look at: tables, figures, number formats."""
