/* C++ names as they are written in the source. */
#ifndef SYMBOLS_DEMANGLE_H
#define SYMBOLS_DEMANGLE_H

/* @return the demangled form of a symbol's name, to be freed; NULL: it is not a mangled one, or out of memory. */
char *demangle(const char *name);

#endif
