! The same in Fortran.
program steps
    use dftracer
    implicit none
    integer :: n, step, bytes, code
    character(len=512) :: path, word
    type(dftracer_region) :: all_steps

    path = 'steps.out'
    n = 3
    if (command_argument_count() > 0) call get_command_argument(1, path)
    if (command_argument_count() > 1) then
        call get_command_argument(2, word)
        read (word, *, iostat=code) n
    end if
    bytes = 0

    call dftracer_init()
    call dftracer_app_metadata('steps', n)
    call dftracer_metadata('solver', 'harmonic')
    call dftracer_region_start(all_steps, 'all_steps')
    do step = 0, n - 1
        call checkpoint(compute(step))
    end do
    call dftracer_region_end(all_steps)
    call dftracer_fini()
    print '(a,i0,a,i0,a,i0)', 'all_steps 1 compute ', n, ' checkpoint ', n, ' bytes ', bytes

contains

    function compute(at) result(total)
        integer, intent(in) :: at
        double precision :: total
        type(dftracer_region) :: region
        integer :: i

        call dftracer_region_start(region, 'compute')
        call dftracer_region_update(region, 'step', at)
        total = 0
        do i = 1, 99999
            total = total + 1d0/(i + at)
        end do
        call dftracer_region_end(region)
    end function compute

    subroutine checkpoint(value)
        double precision, intent(in) :: value
        type(dftracer_region) :: region
        integer :: unit

        call dftracer_region_start(region, 'checkpoint')
        call dftracer_region_update(region, 'file', path)
        open (newunit=unit, file=trim(path), position='append', action='write')
        write (unit, '(f12.6)') value
        close (unit)
        bytes = bytes + 13
        call dftracer_region_update(region, 'bytes', 13)
        call dftracer_region_end(region)
    end subroutine checkpoint

end program steps
