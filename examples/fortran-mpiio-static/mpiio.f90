! Ranks write one file together and each its own part of another, read them back, and say what they did.
! usage: mpirun -np N mpiio [DIRECTORY]
program mpiio
   use mpi
   implicit none
   integer, parameter :: n = 4096, steps = 3
   integer :: rank, ranks, code, step, column
   integer(kind=MPI_OFFSET_KIND) :: at
   double precision :: field(n), back(n)
   character(len=256) :: directory
   character(len=512) :: line

   call MPI_Init(code)
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
   directory = '.'
   if (command_argument_count() > 0) call get_command_argument(1, directory)
   call collective(trim(directory)//'/columns.dat')
   call independent(trim(directory)//'/blocks.dat')
   call MPI_Finalize(code)

contains
   ! Column by column of a matrix: rank r has every column r, r + ranks, ... as elements far apart.
   subroutine collective(name)
      character(len=*), intent(in) :: name
      integer :: file, every

      call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, code)
      call check(code)
      call MPI_Type_vector(n, 1, ranks, MPI_DOUBLE_PRECISION, every, code)
      call MPI_Type_commit(every, code)
      do step = 1, steps
         field = [(rank + ranks*column + 0.5d0*step, column=1, n)]
         at = 8_MPI_OFFSET_KIND*(n*ranks*(step - 1) + rank)
         call MPI_File_set_view(file, at, MPI_DOUBLE_PRECISION, every, 'native', MPI_INFO_NULL, code)
         call MPI_File_write_all(file, field, n, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, code)
         call check(code)
      end do
      call MPI_File_seek(file, 0_MPI_OFFSET_KIND, MPI_SEEK_SET, code)
      call MPI_File_read_all(file, back, n, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, code)
      if (any(back /= field)) call check(MPI_ERR_IO)
      call MPI_Type_free(every, code)
      call MPI_File_close(file, code)
      call told('MPI_File_write_all', steps, name)
      call told('MPI_File_read_all', 1, name)
   end subroutine

   ! One block of each rank after the other.
   subroutine independent(name)
      character(len=*), intent(in) :: name
      integer :: file

      call MPI_File_open(MPI_COMM_WORLD, name, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, code)
      call check(code)
      do step = 1, steps
         at = 8_MPI_OFFSET_KIND*n*(ranks*(step - 1) + rank)
         call MPI_File_write_at(file, at, field, n, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, code)
         call check(code)
      end do
      call MPI_File_read_at(file, at, back, n, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, code)
      if (any(back /= field)) call check(MPI_ERR_IO)
      call MPI_File_close(file, code)
      call told('MPI_File_write_at', steps, name)
      call told('MPI_File_read_at', 1, name)
   end subroutine

   subroutine told(name, calls, file)
      character(len=*), intent(in) :: name, file
      integer, intent(in) :: calls

      write (line, '(a,i0,1x,a,1x,i0,a,i0,a,a)') 'rank ', rank, name, calls, ' calls ', 8*n*calls, ' bytes ', file
      print '(a)', trim(line)
   end subroutine

   subroutine check(result)
      integer, intent(in) :: result

      if (result /= MPI_SUCCESS) call MPI_Abort(MPI_COMM_WORLD, 1, code)
   end subroutine
end program
