/* The reader of ELF files, with any bytes: refused, or understood as far as it goes. The functions that it finds are
 * planned. */
#include "symbols/plan.h"
#include "tests/fuzz/fuzz.h"

enum { FUNCTIONS = 50 };

static void variable(void *data, const char *name, uint64_t address)
{
	(void)address;
	*(size_t *)data += name[0] != 0;
}

static void look(struct object *object, struct insn_decoder *decoder)
{
	const char *const prefixes[] = {"H5", "ompi", NULL};
	const struct object_symbol *symbols;
	uint64_t begin, end, resolver, slot;
	size_t count, len, at = 0, variables = 0;

	symbols = object_symbols(object, &count);
	for (size_t i = 0; i < count && i < FUNCTIONS; i++) {
		FUZZ_HOLDS(object_named(object, symbols[i].name, NULL));
		FUZZ_HOLDS(i == 0 || symbols[i - 1].address <= symbols[i].address);
		if (object_bounds(object, symbols[i].address, &begin, &end))
			FUZZ_HOLDS(begin <= symbols[i].address && symbols[i].address < end);
		const struct plan *plan = plan_function(object, decoder, symbols[i].address);
		FUZZ_HOLDS(plan && (plan->refused || plan->nplaces > 0));
		object_code(object, symbols[i].address, &len);
	}
	object_variables(object, prefixes, variable, &variables);
	object_has_text(object, "HDF5 library version");
	object_address_of(object, 0x1000);
	while (object_irelative(object, &at, &resolver, &slot))
		object_data(object, slot, &len);
	object_libc(object);
	object_has_c_start(object);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct insn_decoder *decoder;
	struct objects *objects = objects_new(NULL, 0);

	if (!decoder)
		decoder = insn_decoder_new();
	FUZZ_HOLDS(objects && decoder);
	struct object *object = objects_get(objects, fuzz_file("object", data, size));
	if (object)
		look(object, decoder);
	objects_free(objects);
	fuzz_clean();
	return 0;
}
