"""Tables for people and programs: columns, number formats, a study as files."""
