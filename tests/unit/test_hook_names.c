/* Functions of libraries by the spellings of their symbols. */
#include "symbols/hooks.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

struct spelling {
	const char *symbol;
	const char *name; /* NULL: none of MPI */
	enum hook_form form;
};

static void test_mpi(void **state)
{
	static const struct spelling spellings[] = {
		{"MPI_File_open", "MPI_File_open", HOOK_FORM_C},
		{"PMPI_File_open", "MPI_File_open", HOOK_FORM_C},
		{"MPI_Send_c", "MPI_Send_c", HOOK_FORM_C},
		{"MPI_FILE_OPEN", "MPI_File_open", HOOK_FORM_FORTRAN},
		{"mpi_file_open", "MPI_File_open", HOOK_FORM_FORTRAN},
		{"mpi_file_open_", "MPI_File_open", HOOK_FORM_FORTRAN},
		{"mpi_file_open__", "MPI_File_open", HOOK_FORM_FORTRAN},
		{"pmpi_file_open_", "MPI_File_open", HOOK_FORM_FORTRAN},
		{"PMPI_FILE_OPEN", "MPI_File_open", HOOK_FORM_FORTRAN},
		{"MPI_File_open_f", "MPI_File_open", HOOK_FORM_FORTRAN},
		{"PMPI_File_open_f08", "MPI_File_open", HOOK_FORM_FORTRAN},
		{"mpi_file_open_f08_", "MPI_File_open", HOOK_FORM_FORTRAN},
		{"pmpir_file_open_f08_", "MPI_File_open", HOOK_FORM_FORTRAN},
		{"mpi_send_f08ts_", "MPI_Send", HOOK_FORM_DESCRIPTORS},
		{"pmpir_send_f08ts_", "MPI_Send", HOOK_FORM_DESCRIPTORS},
		{"mpi_send_f08ts_large_", "MPI_Send_c", HOOK_FORM_DESCRIPTORS},
		{"mpi_type_contiguous_f08_large_", "MPI_Type_contiguous_c", HOOK_FORM_FORTRAN},
		{"MPI_Type_c2f", "MPI_Type_c2f", HOOK_FORM_C},
		{"MPIR_Send", NULL, HOOK_FORM_C},
		{"MPI_Sendfile", NULL, HOOK_FORM_C},
		{"mpi_send_buffer", NULL, HOOK_FORM_C},
		{"MPIX_Send", NULL, HOOK_FORM_C},
		{"MPI_", NULL, HOOK_FORM_C},
		{"mpi__", NULL, HOOK_FORM_C},
		{"send", NULL, HOOK_FORM_C},
		{"", NULL, HOOK_FORM_C},
	};
	struct hook_names *names = hook_names_new(HOOK_MPI);
	enum hook_form form;

	(void)state;
	assert_non_null(names);
	for (size_t i = 0; i < sizeof(spellings) / sizeof(*spellings); i++) {
		const struct spelling *s = &spellings[i];
		const struct hook_row *row = hook_names_find(names, s->symbol, &form);
		if (!s->name) {
			if (row)
				fail_msg("%s is %s", s->symbol, row->name);
			continue;
		}
		if (!row) {
			fail_msg("%s is not found", s->symbol);
			continue;
		}
		assert_string_equal(row->name, s->name);
		assert_int_equal(form, s->form);
	}
	hook_names_free(names);
}

static void test_hdf5(void **state)
{
	struct hook_names *names = hook_names_new(HOOK_HDF5);
	enum hook_form form;

	(void)state;
	assert_non_null(names);
	assert_string_equal(hook_names_find(names, "H5Dwrite", &form)->name, "H5Dwrite");
	assert_int_equal(form, HOOK_FORM_C);
	assert_null(hook_names_find(names, "h5dwrite", &form));
	assert_null(hook_names_find(names, "H5D_write", &form));
	hook_names_free(names);
}

/* Every row of a table is found by its own name, and its arguments fit. */
static void test_rows(void **state)
{
	enum hook_form form;

	(void)state;
	for (unsigned layer = HOOK_MPI; layer <= HOOK_HDF5; layer++) {
		struct hook_names *names = hook_names_new(layer);
		assert_non_null(names);
		for (size_t i = 0; i < hook_tables[layer].count; i++) {
			const struct hook_row *row = &hook_tables[layer].rows[i];
			size_t count = 0;
			assert_ptr_equal(hook_names_find(names, row->name, &form), row);
			while (row->args[count].kind != HOOK_A_END)
				count++;
			assert_true(count < HOOK_MAX_ARGS);
		}
		hook_names_free(names);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mpi),
		cmocka_unit_test(test_hdf5),
		cmocka_unit_test(test_rows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
