! Handles that go from Fortran to C and back: files and datatypes. With mpi_mixed_c.c.
program mpi_mixed
   use mpi
   implicit none
   interface
      subroutine write_in_c(file) bind(c)
         use iso_c_binding, only: c_int
         integer(c_int), value :: file
      end subroutine
      subroutine open_in_c(file, type) bind(c)
         use iso_c_binding, only: c_int
         integer(c_int) :: file, type
      end subroutine
   end interface
   integer :: file, type, code
   double precision :: data(64)

   data = 1
   call MPI_Init(code)
   call MPI_File_open(MPI_COMM_WORLD, 'fortran.dat', MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, code)
   call write_in_c(file)
   call MPI_File_close(file, code)
   call open_in_c(file, type)
   call MPI_File_write_at(file, 0_MPI_OFFSET_KIND, data, 3, type, MPI_STATUS_IGNORE, code)
   call MPI_File_close(file, code)
   call MPI_Type_free(type, code)
   call MPI_Finalize(code)
end program
