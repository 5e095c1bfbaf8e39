! What a pread costs in a Fortran program, in ns: as calls.c's burst. usage: calls.gfortran burst COUNT FILE
program calls
	use, intrinsic :: iso_c_binding
	implicit none
	integer, parameter :: burst = 2000
	interface
		integer(c_int) function c_open(path, flags) bind(c, name="open")
			import
			character(kind=c_char), intent(in) :: path(*)
			integer(c_int), value :: flags
		end function
		integer(c_size_t) function c_pread(fd, to, count, offset) bind(c, name="pread")
			import
			integer(c_int), value :: fd
			character(kind=c_char), intent(out) :: to(*)
			integer(c_size_t), value :: count
			integer(c_long), value :: offset
		end function
		integer(c_int) function c_usleep(us) bind(c, name="usleep")
			import
			integer(c_int), value :: us
		end function
	end interface
	character(len=4096) :: word
	character(kind=c_char) :: byte(1)
	integer(c_int) :: fd, ignored
	integer(c_int64_t) :: start, now, rate
	integer :: times, i, k
	real(c_double), allocatable :: taken(:)

	call get_command_argument(2, word)
	read (word, *) times
	allocate (taken(times))
	call get_command_argument(3, word)
	fd = c_open(trim(word) // c_null_char, 0)
	if (fd < 0) error stop "calls: the file cannot be opened"
	call system_clock(count_rate=rate)
	do i = 1, times
		ignored = c_usleep(30000)
		call system_clock(start)
		do k = 1, burst
			if (c_pread(fd, byte, 1_c_size_t, 0_c_long) /= 1) error stop "calls: nothing to read"
		end do
		call system_clock(now)
		taken(i) = real(now - start, c_double) / real(rate, c_double) * 1d9 / burst
	end do
	print "(f0.3)", median(taken)
contains
	real(c_double) function median(values)
		real(c_double), intent(in) :: values(:)
		integer :: j

		do j = 1, size(values)
			median = values(j)
			if (count(values < median) <= size(values) / 2 .and. count(values > median) <= size(values) / 2) return
		end do
	end function
end program
