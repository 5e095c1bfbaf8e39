! Annotations in Fortran. Prints as annotated.c does.
program annotated_fortran
    use dftracer
    implicit none
    type(dftracer_region) :: outer, never

    call dftracer_init()
    call dftracer_app_metadata('answer', 42)
    call dftracer_app_metadata('case', 'fortran  ')
    call dftracer_mark_used('solver')
    call dftracer_metadata('key', 'value')
    print '(a)', 'custom key value'
    call dftracer_region_end(never)
    call dftracer_region_update(never, 'x', 1)
    call dftracer_region_start(outer, 'outer')
    call recurse(2, 'outer')
    call dftracer_region_update(outer, 'text', 'with blanks   ')
    call dftracer_region_update(outer, 'text', 'the last')
    call dftracer_region_end(outer)
    print '(a)', '{"name":"outer","cat":"C_APP","in":"","args":{"text":"the last"}}'
    call dftracer_region_start(outer, 'own', cat='MY_CAT')
    call dftracer_region_end(outer)
    print '(a)', '{"name":"own","cat":"MY_CAT","in":"","args":{}}'
    call dftracer_fini()
    print '(a)', 'app {"answer": 42, "case": "fortran"}'
    print '(a)', 'used {"C_APP": 1, "solver": 1}'

contains

    recursive subroutine recurse(n, in)
        integer, intent(in) :: n
        character(*), intent(in) :: in
        type(dftracer_region) :: region

        call dftracer_region_start(region, 'recurse')
        call dftracer_region_update(region, 'n', n)
        if (n > 0) call recurse(n - 1, 'recurse')
        call dftracer_region_end(region)
        print '(3a,i0,a)', '{"name":"recurse","cat":"C_APP","in":"', in, '","args":{"n":', n, '}}'
    end subroutine recurse

end program annotated_fortran
