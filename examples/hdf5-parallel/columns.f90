! Parallel HDF5 from Fortran: each rank writes and reads its own columns of one dataset, collectively.
! usage: mpirun -n N columns DIRECTORY. Rank 0 tells for all what moved: rank R hdf5 FUNCTION FILE OBJECT BYTES, separated
! by tabs.
program columns
   use mpi
   use hdf5
   implicit none
   integer, parameter :: n = 32, words = 4096
   character(len=*), parameter :: name = 'columns.h5', object = '/columns'
   character(len=words) :: directory, text
   character(len=words), allocatable :: everyone(:)
   integer(hid_t) :: access, transfer, file, in_file, in_memory, set
   integer(hsize_t) :: all(2), mine(2), start(2)
   real(8), allocatable :: a(:, :), b(:, :)
   integer :: rank, ranks, r, error

   text = ''
   call get_command_argument(1, directory)
   call mpi_init(error)
   call mpi_comm_rank(MPI_COMM_WORLD, rank, error)
   call mpi_comm_size(MPI_COMM_WORLD, ranks, error)
   mine = [n, rank + 1]
   all = [n, ranks*(ranks + 1)/2]
   start = [0, rank*(rank + 1)/2]
   allocate (a(n, rank + 1), b(n, rank + 1), everyone(ranks))
   a = rank + 1

   call h5open_f(error)
   call h5pcreate_f(H5P_FILE_ACCESS_F, access, error)
   call h5pset_fapl_mpio_f(access, MPI_COMM_WORLD, MPI_INFO_NULL, error)
   call h5fcreate_f(trim(directory)//'/'//name, H5F_ACC_TRUNC_F, file, error, access_prp=access)
   call say('H5Fcreate', '-')
   call h5screate_simple_f(2, all, in_file, error)
   call h5screate_simple_f(2, mine, in_memory, error)
   call h5sselect_hyperslab_f(in_file, H5S_SELECT_SET_F, start, mine, error)
   call h5dcreate_f(file, 'columns', H5T_NATIVE_DOUBLE, in_file, set, error)
   call say('H5Dcreate2', object)
   call h5pcreate_f(H5P_DATASET_XFER_F, transfer, error)
   call h5pset_dxpl_mpio_f(transfer, H5FD_MPIO_COLLECTIVE_F, error)
   call h5dwrite_f(set, H5T_NATIVE_DOUBLE, a, mine, error, in_memory, in_file, transfer)
   call say('H5Dwrite', object, 8*n*(rank + 1))
   call h5dread_f(set, H5T_NATIVE_DOUBLE, b, mine, error, in_memory, in_file, transfer)
   call say('H5Dread', object, 8*n*(rank + 1))
   if (any(a /= b)) call mpi_abort(MPI_COMM_WORLD, 2, error)
   call h5dclose_f(set, error)
   call say('H5Dclose', object)
   call h5sclose_f(in_file, error)
   call h5sclose_f(in_memory, error)
   call h5pclose_f(transfer, error)
   call h5pclose_f(access, error)
   call h5fclose_f(file, error)
   call say('H5Fclose', '-')
   call h5close_f(error)

   call mpi_gather(text, words, MPI_CHARACTER, everyone, words, MPI_CHARACTER, 0, MPI_COMM_WORLD, error)
   if (rank == 0) then
      do r = 1, ranks
         write (*, '(a)', advance='no') trim(everyone(r))
      end do
   end if
   call mpi_finalize(error)
contains
   subroutine say(function, what, bytes)
      character(len=*), intent(in) :: function, what
      integer, intent(in), optional :: bytes
      character(len=*), parameter :: tab = achar(9)
      character(len=20) :: number, who

      if (error /= 0) call mpi_abort(MPI_COMM_WORLD, 1, error)
      number = '-'
      if (present(bytes)) write (number, '(i0)') bytes
      write (who, '(i0)') rank
      text = trim(text)//'rank '//trim(who)//tab//'hdf5'//tab//function//tab//name//tab//what//tab// &
             trim(number)//achar(10)
   end subroutine
end program
