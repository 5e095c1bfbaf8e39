! Hooked functions of Fortran: an external one (solver_) and one of a module (__grid_MOD_advance). Units are no
! streams of C. Lines `func` as in hooks_ends.c.
module grid
contains
	integer(8) function advance(n)
		integer(8), intent(in) :: n
		advance = n * 2
	end function
end module

subroutine solver(n, ret)
	integer(8), intent(in) :: n
	integer(8), intent(out) :: ret
	ret = n + 1
end subroutine

program hooks_fortran
	use grid
	implicit none
	external solver
	integer(8) :: i, ret, total
	total = 0
	do i = 1, 50
		call solver(i, ret)
		if (ret /= i + 1) stop 99
		total = total + advance(ret)
	end do
	open(unit=10, file='fortran.txt', status='replace')
	do i = 1, 20
		write(10, '(a,i4)') 'line', i
	end do
	close(10)
	print '(a,i0)', 'total ', total
end program
