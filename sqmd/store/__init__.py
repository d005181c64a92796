"""The index on disk or in an object store: two LanceDB tables, one of chunks and one of files."""
