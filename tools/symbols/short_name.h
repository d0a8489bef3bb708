/*
 * short_name.h - a function's name at a length that a person reads.
 *
 * A C++ template's name can be 1,000 characters long, nearly all of it arguments.
 */
#pragma once

#define SHORT_NAME_MAX 100

/* The demangled name, malloc'ed. One longer than SHORT_NAME_MAX loses the text in the parentheses
 * of its parameters; then, if need be, the text in the angle brackets of its template arguments;
 * then its end. Each is replaced by "...". */
char *short_name_function(const char *name);
