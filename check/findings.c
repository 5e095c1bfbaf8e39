#include "check/findings.h"

#include <stdarg.h>
#include <stdio.h>

const struct finding_row finding_rows[FINDING_KINDS] = {
#define FINDING(id, class, repairable, words)                                                      \
	[FINDING_##id] = {#id, FINDING_##class, repairable, words},
#include "check/findings.def"
};

void finding_add(struct findings *findings, enum finding_kind kind, uint64_t line,
		 const char *format, ...)
{
	struct finding *finding = &findings->items[kind];
	va_list args;

	if (finding->count++ > 0)
		return;
	finding->line = line;
	va_start(args, format);
	vsnprintf(finding->detail, sizeof(finding->detail), format, args);
	va_end(args);
	for (char *p = finding->detail; *p; p++) {
		if (*p < ' ' || *p > '~')
			*p = '?';
	}
}

enum finding_class finding_class(const struct findings *findings, enum finding_kind kind)
{
	enum finding_class class = finding_rows[kind].class;
	if (class == FINDING_CONTRACT)
		return findings->foreign ? FINDING_NOTE : FINDING_ERROR;
	return class;
}

enum finding_class findings_worst(const struct findings *findings)
{
	enum finding_class worst = FINDING_NOTE;
	for (int i = 0; i < FINDING_KINDS; i++) {
		enum finding_class class = finding_class(findings, (enum finding_kind)i);
		if (findings->items[i].count > 0 && class > worst)
			worst = class;
	}
	return worst;
}

unsigned findings_count(const struct findings *findings, bool notes)
{
	unsigned count = 0;
	for (int i = 0; i < FINDING_KINDS; i++) {
		if (findings->items[i].count > 0 &&
		    (notes || finding_class(findings, (enum finding_kind)i) > FINDING_NOTE))
			count++;
	}
	return count;
}

bool findings_repairable(const struct findings *findings)
{
	for (int i = 0; i < FINDING_KINDS; i++) {
		if (findings->items[i].count > 0 && finding_rows[i].repairable &&
		    finding_class(findings, (enum finding_kind)i) > FINDING_NOTE)
			return true;
	}
	return false;
}
