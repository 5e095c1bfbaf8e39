! An MPI program in Fortran: each rank writes a file of its own, of a known size.
program rank_io
	use mpi
	implicit none
	integer :: rank, size, error
	character(len=16) :: name

	call MPI_Init(error)
	call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
	call MPI_Comm_size(MPI_COMM_WORLD, size, error)
	write (name, '("own.", i0)') rank
	open (10, file=trim(name), access='stream', form='unformatted', status='replace')
	write (10) repeat('f', 1000 + 100 * rank)
	close (10)
	call MPI_Barrier(MPI_COMM_WORLD, error)
	call MPI_Finalize(error)
end program
