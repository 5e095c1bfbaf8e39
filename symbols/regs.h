/* What instructions do to registers. */
#ifndef SYMBOLS_REGS_H
#define SYMBOLS_REGS_H

#include "symbols/parse.h"

#define REGS_DEPTH_UNKNOWN INT32_MIN

/* @return whether the instruction may write the register (of a call: may not preserve it); when in
 * doubt it does. */
bool regs_may_write(const struct parse *parse, unsigned reg);

/* @return how far the stack pointer is below that of the function's entry behind the instruction,
 * when it was `depth` before it; REGS_DEPTH_UNKNOWN: not known. */
int32_t regs_depth_behind(const struct parse *parse, int32_t depth);

#endif
