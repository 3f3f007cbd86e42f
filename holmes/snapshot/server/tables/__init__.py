"""Server-side tables: the columns that kubectl shows, one file per area. `layouts.layout_of` finds the right one."""
