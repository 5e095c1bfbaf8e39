/* What the tests of code share: the objects and a decoder. Included behind cmocka.h. */
#ifndef TEST_DECODER_H
#define TEST_DECODER_H

#include "symbols/insn.h"
#include "symbols/object.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

struct fixture {
	struct objects *objects;
	struct insn_decoder *decoder;
};

static int set_up(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	assert_non_null(f);
	f->objects = objects_new(NULL, 0);
	f->decoder = insn_decoder_new();
	assert_non_null(f->objects);
	assert_non_null(f->decoder);
	*state = f;
	return 0;
}

static int tear_down(void **state)
{
	struct fixture *f = *state;

	objects_free(f->objects);
	insn_decoder_free(f->decoder);
	free(f);
	return 0;
}

#endif
