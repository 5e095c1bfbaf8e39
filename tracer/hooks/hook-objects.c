/* Which functions of a file are hooked, and where their breakpoints go. */
#include "base/path.h"
#include "symbols/demangle.h"
#include "tracer/hooks/library.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

struct builder {
	struct hooks *hooks;
	struct object *object;
	struct hook_object *result;
	size_t functions_cap;
	struct map by_address; /* function number + 1 */
	bool failed;
};

static struct hook_function *add_function(struct builder *b, uint64_t address, const char *name,
					  const struct hook_row *row)
{
	struct hook_object *result = b->result;

	if (map_get(&b->by_address, address))
		return NULL; /* an alias, or a row of higher precedence */
	if (result->nfunctions == b->functions_cap) {
		size_t cap = b->functions_cap ? b->functions_cap * 2 : 64;
		struct hook_function *more = reallocarray(result->functions, cap, sizeof(*more));
		if (!more) {
			b->failed = true;
			return NULL;
		}
		result->functions = more;
		b->functions_cap = cap;
	}
	if (map_put(&b->by_address, address, (void *)(result->nfunctions + 1)) < 0) {
		b->failed = true;
		return NULL;
	}
	struct hook_function *function = &result->functions[result->nfunctions++];
	*function = (struct hook_function){
		.name = name,
		.row = row,
		.layer = row ? row->layer : HOOK_FUNC,
		.libc = object_libc(b->object),
		.address = address,
	};
	return function;
}

/* @return the function that is hooked at the address already, NULL: none. */
static struct hook_function *function_at(const struct builder *b, uint64_t address)
{
	size_t number = (size_t)map_get(&b->by_address, address);

	return number ? &b->result->functions[number - 1] : NULL;
}

static void refuse(struct hooks *hooks, struct hook_census *census, const char *name,
		   const char *reason)
{
	census->refused++;
	buf_addf(&hooks->reasons, "%s%s: %s", hooks->reasons.len ? ", " : "", name, reason);
}

static void find_stdio(struct builder *b)
{
	struct hook_census *census = &b->hooks->census[HOOK_STDIO];
	const struct hook_table *table = &hook_tables[HOOK_STDIO];
	const bool *wanted = b->hooks->wanted[HOOK_STDIO];

	if (!wanted || object_libc(b->object) == OBJECT_NO_LIBC)
		return;
	for (size_t i = 0; i < table->count; i++) {
		const struct hook_row *row = &table->rows[i];
		if (!wanted[i])
			continue;
		for (size_t n = 0; n < HOOK_MAX_NAMES && row->symbols[n]; n++) {
			const struct object_symbol *s =
				object_named(b->object, row->symbols[n], NULL);
			/* Versions of a symbol are functions of their own. */
			for (; s; s = object_named(b->object, row->symbols[n], s)) {
				if (s->ifunc || map_get(&b->by_address, s->address))
					continue;
				if (add_function(b, s->address, row->name, row))
					census->found++;
			}
		}
	}
}

/* The functions of a library with a table of arguments. Names at one address are one function. */
static void find_library(struct builder *b, enum hook_layer layer)
{
	struct hook_names *names = b->hooks->names[layer];
	const bool *wanted = b->hooks->wanted[layer];
	const bool *written = b->hooks->options.written[layer];
	enum hook_form form;
	size_t count;
	const struct object_symbol *symbols = object_symbols(b->object, &count);

	for (size_t i = 0; names && i < count; i++) {
		/* A static function is the program's own, whatever it is called. */
		if (symbols[i].local || symbols[i].ifunc)
			continue;
		const struct hook_row *row = hook_names_find(names, symbols[i].name, &form);
		if (!row)
			continue;
		b->result->present |= 1U << layer;
		size_t number = (size_t)(row - hook_tables[layer].rows);
		if (!wanted[number])
			continue;
		struct hook_function *function =
			add_function(b, symbols[i].address, row->name, row);
		if (!function)
			continue;
		function->form = form;
		function->silent = !written[number];
		function->brief = function->silent && (row->serves & HOOK_BRIEFLY) &&
				  !(row->serves & b->hooks->used[layer]);
		b->hooks->census[layer].found++;
	}
}

/* @return whether the file is, or holds, DFTracer's own library: some of its functions have names that others
 * have, too. */
static bool is_dftracer(const struct builder *b)
{
	return object_named(b->object, "_ZN8DFTracerC1EPKcS1_i14TraceEventType", NULL);
}

static void find_annotations(struct builder *b)
{
	const struct hook_table *table = &hook_tables[HOOK_APP];
	const bool *wanted = b->hooks->wanted[HOOK_APP];

	for (size_t i = 0; wanted && i < table->count; i++) {
		const struct hook_row *row = &table->rows[i];
		const struct object_symbol *s =
			wanted[i] && (!row->of_library || is_dftracer(b))
				? object_named(b->object, row->symbols[0], NULL)
				: NULL;
		if (s && add_function(b, s->address, row->name, row))
			b->hooks->census[HOOK_APP].found++;
	}
}

struct variables {
	struct builder *builder;
	enum hook_layer layer;
};

static void add_variable(void *data, const char *name, uint64_t address)
{
	struct variables *v = data;
	struct hook_object *result = v->builder->result;
	struct hook_variable *more =
		reallocarray(result->variables, result->nvariables + 1, sizeof(*more));
	char *copy = strndup(name, strcspn(name, "@"));

	if (more)
		result->variables = more;
	if (!more || !copy) {
		free(copy);
		v->builder->failed = true;
		return;
	}
	more += result->nvariables++;
	more->layer = v->layer;
	more->address = address;
	more->name = copy;
}

static void find_variables(struct builder *b, enum hook_layer layer)
{
	struct variables data = {b, layer};

	if (b->hooks->names[layer] && hook_library(layer)->variables)
		object_variables(b->object, hook_library(layer)->variables, add_variable, &data);
}

static bool matches(const struct hooks *hooks, size_t p, const char *name)
{
	if (hooks->regexes[p].used)
		return regexec(&hooks->regexes[p].regex, name, 0, NULL, 0) == 0;
	return fnmatch(hooks->options.patterns[p].function, name, 0) == 0;
}

/* A pattern that only a C++ name as in the source can match. */
static bool is_source_pattern(const char *pattern)
{
	return strstr(pattern, "::") || strchr(pattern, '(');
}

static bool symbol_matches(const struct hooks *hooks, size_t p, const char *name)
{
	if (matches(hooks, p, name))
		return true;
	if (!is_source_pattern(hooks->options.patterns[p].function))
		return false;
	char *source = demangle(name);
	bool found = source && matches(hooks, p, source);
	free(source);
	return found;
}

/* Compilers move what is rarely executed out of a function: that is no function, it is jumped to. */
static bool is_part(const char *name)
{
	const char *cold = strstr(name, ".cold");

	return cold && (cold[5] == '\0' || cold[5] == '.');
}

/* An IFUNC's symbol has its resolver's address. That is watched for what it returns; which relocation asks, the
 * loader's, the static start-up's or the first call's, does not matter then. */
static bool add_resolver(struct builder *b, const struct object_symbol *symbol)
{
	struct hook_function *function = function_at(b, symbol->address);

	if (!function) {
		if (!add_function(b, symbol->address, symbol->name, NULL))
			return false;
		function = function_at(b, symbol->address);
		function->only_chooses = true;
	}
	if (function->chooses)
		return false;
	function->chooses = symbol->name;
	return true;
}

static bool add_plain(struct builder *b, const struct object_symbol *symbol)
{
	struct hook_function *function = function_at(b, symbol->address);

	if (!function)
		return add_function(b, symbol->address, symbol->name, NULL);
	if (function->brief) {
		b->hooks->census[function->layer].found--;
		function->row = NULL;
		function->layer = HOOK_FUNC;
		function->form = HOOK_FORM_C;
		function->silent = false;
		function->brief = false;
	} else if (!function->only_chooses) {
		return false;
	}
	function->name = symbol->name;
	function->only_chooses = false;
	return true;
}

/* A file that a pattern names, and the program, should tell their functions; that system libraries show no
 * more than they export is no news. */
static void note_nameless(struct builder *b, size_t p, const char *path, bool is_program)
{
	struct hook_regex *regex = &b->hooks->regexes[p];
	enum object_names names = object_names(b->object);

	if ((names != OBJECT_NO_NAMES && names != OBJECT_EXPORTED) ||
	    !(is_program || b->hooks->options.patterns[p].module))
		return;
	if (regex->nameless) {
		regex->more_nameless++;
		return;
	}
	regex->nameless = strdup(path);
	regex->exports = names == OBJECT_EXPORTED;
}

static void find_user(struct builder *b, const char *path, bool is_program)
{
	const struct hook_options *options = &b->hooks->options;
	struct hook_census *census = &b->hooks->census[HOOK_FUNC];
	size_t count;
	const struct object_symbol *symbols = object_symbols(b->object, &count);

	for (size_t p = 0; p < options->npatterns; p++) {
		const struct hook_pattern *pattern = &options->patterns[p];
		if (pattern->module && fnmatch(pattern->module, path_basename(path), 0) != 0)
			continue;
		note_nameless(b, p, path, is_program);
		for (size_t i = 0; i < count; i++) {
			if (!symbol_matches(b->hooks, p, symbols[i].name))
				continue;
			b->hooks->regexes[p].matched = true;
			if (is_part(symbols[i].name))
				continue;
			if (symbols[i].ifunc ? add_resolver(b, &symbols[i])
					     : add_plain(b, &symbols[i]))
				census->found++;
		}
	}
}

/* Adds a place, or what this function makes of one that is there. */
static struct hook_place *add_place(struct builder *b, struct map *by_address, size_t *cap,
				    const struct plan_place *planned)
{
	struct hook_object *result = b->result;
	size_t number = (size_t)map_get(by_address, planned->address);

	if (!number) {
		if (result->nplaces == *cap) {
			size_t more = *cap ? *cap * 2 : 256;
			struct hook_place *places =
				reallocarray(result->places, more, sizeof(*places));
			if (!places)
				return NULL;
			result->places = places;
			*cap = more;
		}
		number = result->nplaces + 1;
		if (map_put(by_address, planned->address, (void *)number) < 0)
			return NULL;
		result->nplaces++;
		result->places[number - 1] = (struct hook_place){
			.address = planned->address,
			.insn = planned->insn,
			.brief = true,
		};
	}
	return &result->places[number - 1];
}

static void plan_all(struct builder *b)
{
	struct hooks *hooks = b->hooks;
	struct map by_address = {0};
	size_t cap = 0;

	for (size_t i = 0; i < b->result->nfunctions && !b->failed; i++) {
		struct hook_function *function = &b->result->functions[i];
		struct hook_census *census = &hooks->census[function->layer];
		const struct plan *plan =
			plan_function(b->object, hooks->decoder, function->address);
		if (!plan || plan->refused) {
			b->result->refused++;
			refuse(hooks, census, function->name,
			       plan ? plan->refused : "out of memory");
			continue;
		}
		census->hooked += function->chooses && !function->only_chooses ? 2 : 1;
		function->loops = plan->loops;
		for (size_t p = 0; p < plan->nplaces; p++) {
			/* An annotation says all when it begins. */
			if (function->layer == HOOK_APP && plan->places[p].kind != PLAN_ENTRY)
				continue;
			struct hook_place *place =
				add_place(b, &by_address, &cap, &plan->places[p]);
			if (!place) {
				b->failed = true;
				break;
			}
			place->brief &= function->brief;
			place->ret |= place->insn.kind == INSN_RET;
			place->tail |= plan->places[p].kind == PLAN_TAIL;
			if (plan->places[p].kind == PLAN_ENTRY)
				place->function = function;
		}
	}
	map_free(&by_address);
}

struct hook_object *hook_object_known(struct hooks *hooks, const struct object *object)
{
	return map_get(&hooks->hook_objects, (uintptr_t)object);
}

struct hook_object *hook_object_get(struct hooks *hooks, struct object *object, const char *path,
				    bool is_program)
{
	struct hook_object *known = hook_object_known(hooks, object);
	struct builder b = {.hooks = hooks, .object = object};

	if (known)
		return known;
	b.result = calloc(1, sizeof(*b.result));
	if (!b.result)
		return NULL;
	find_stdio(&b);
	find_annotations(&b);
	for (unsigned layer = HOOK_MPI; layer <= HOOK_HDF5; layer++) {
		find_library(&b, layer);
		find_variables(&b, layer);
	}
	find_user(&b, path, is_program);
	plan_all(&b);
	for (size_t i = 0; i < b.result->nfunctions; i++)
		b.result->functions[i].object = b.result;
	map_free(&b.by_address);
	if (b.failed || map_put(&hooks->hook_objects, (uintptr_t)object, b.result) < 0) {
		hook_object_free(b.result);
		return NULL;
	}
	return b.result;
}

void hook_object_refuse_choice(struct hooks *hooks, struct hook_function *resolver,
			       const char *reason)
{
	if (resolver->chosen)
		return;
	resolver->chosen = true;
	hooks->census[HOOK_FUNC].hooked--;
	refuse(hooks, &hooks->census[HOOK_FUNC], resolver->chooses, reason);
}

static bool has_function(const struct hook_object *object, uint64_t address)
{
	for (size_t i = 0; i < object->nfunctions; i++) {
		if (object->functions[i].address == address)
			return true;
	}
	return false;
}

struct hook_object *hook_object_choose(struct hooks *hooks, struct object *object,
				       struct hook_function *resolver, uint64_t address)
{
	struct hook_object *known = map_get(&hooks->hook_objects, (uintptr_t)object);
	struct builder b = {.hooks = hooks, .object = object};

	if (!known || has_function(known, address))
		return NULL;
	/* Another process may have asked before, when this one had the file mapped already. */
	for (struct hook_object *before = known->next; before; before = before->next) {
		if (has_function(before, address))
			return before;
	}
	b.result = calloc(1, sizeof(*b.result));
	if (!b.result)
		return NULL;
	/* Where its choice was known to be one, it was counted with the resolver. */
	if (resolver->chosen)
		hooks->census[HOOK_FUNC].found++;
	else
		hooks->census[HOOK_FUNC].hooked--;
	resolver->chosen = true;
	if (add_function(&b, address, resolver->chooses, NULL))
		plan_all(&b);
	map_free(&b.by_address);
	if (b.failed) {
		hook_object_free(b.result);
		return NULL;
	}
	b.result->next = known->next;
	known->next = b.result;
	return b.result;
}

void hook_object_free(struct hook_object *object)
{
	while (object) {
		struct hook_object *next = object->next;
		for (size_t i = 0; i < object->nvariables; i++)
			free(object->variables[i].name);
		free(object->variables);
		free(object->functions);
		free(object->places);
		free(object);
		object = next;
	}
}
