"""Files as rows, and rows as messages: CSV, lines of JSON and Parquet, by one listing, for every engine.

listing        the files of a path, directory or pattern
byte_lines     the lines of a file, or of a range of it
csv_rows       CSV
json_rows      lines of JSON
parquet_rows   Parquet
cells          a value of a row as JSON and as bytes
message_rows   the one rule that makes a message of a row, or names the problem
input_parts    the parts that tasks read, each by itself
"""
