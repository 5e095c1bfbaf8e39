! Messages and files from Fortran. The interface is chosen by the preprocessor: F08 (use mpi_f08), MPIF (mpif.h), else use mpi.
program mpi_fortran
#if defined(F08)
   use mpi_f08
   implicit none
#define TYPED(kind) type(kind)
#elif defined(MPIF)
   implicit none
   include 'mpif.h'
#define TYPED(kind) integer
#else
   use mpi
   implicit none
#define TYPED(kind) integer
#endif
   integer, parameter :: lines_most = 100
   character(len=120) :: said(lines_most)
   integer :: lines = 0
   integer :: rank, ranks, code, i, unit, half_rank, half_ranks
   integer :: numbers(64), more(64), counts(16), places(16)
   double precision :: data(512), others(512)
   integer(kind=MPI_OFFSET_KIND) :: at
   character(len=40) :: path
   TYPED(MPI_File) :: file
   TYPED(MPI_Datatype) :: row, twice
   TYPED(MPI_Request) :: request
   TYPED(MPI_Comm) :: half

   call MPI_Init(code)
   call say('MPI_Init - - - -')
   call MPI_Comm_rank(MPI_COMM_WORLD, rank, code)
   call MPI_Comm_size(MPI_COMM_WORLD, ranks, code)
   data = rank
   numbers = rank
   call messages()
   call files()
   call MPI_Finalize(code)
   call say('MPI_Finalize - - - -')
   write (path, '(a,i0)') 'words.', rank
   open (newunit=unit, file=path, action='write', status='replace')
   do i = 1, lines
      write (unit, '(a)') trim(said(i))
   end do
   close (unit)
   print '(a,i0,a,i0,a)', 'rank ', rank, ' of ', ranks, ' is done'

contains
   subroutine say(text)
      character(len=*), intent(in) :: text

      lines = lines + 1
      said(lines) = text
   end subroutine

   ! name, bytes, and what more there is, of a call on the world's communicator
   subroutine told(name, bytes, more_words)
      character(len=*), intent(in) :: name, more_words
      integer, intent(in) :: bytes
      character(len=120) :: text

      write (text, '(a,1x,i0,a,i0,1x,i0,1x,a)') name, bytes, ' - ', rank, ranks, more_words
      call say(text)
   end subroutine

   ! … on the file
   subroutine on_file(name, bytes, more_words)
      character(len=*), intent(in) :: name, bytes, more_words
      character(len=120) :: text

      write (text, '(a,1x,a,1x,a,1x,i0,1x,i0,1x,a)') name, bytes, trim(path), rank, ranks, more_words
      call say(text)
   end subroutine

   subroutine messages()
      if (rank == 0) then
         call MPI_Send(data, 11, MPI_DOUBLE_PRECISION, 1, 7, MPI_COMM_WORLD, code)
         call told('MPI_Send', 88, 'count=11 dest=1 tag=7')
      else if (rank == 1) then
         call MPI_Recv(data, 11, MPI_DOUBLE_PRECISION, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, code)
         call told('MPI_Recv', 88, 'count=11 source=0 tag=7')
      end if
      call MPI_Bcast(numbers, 6, MPI_INTEGER, 0, MPI_COMM_WORLD, code)
      call told('MPI_Bcast', 24, 'count=6 root=0')
      call MPI_Allreduce(MPI_IN_PLACE, others, 5, MPI_REAL8, MPI_SUM, MPI_COMM_WORLD, code)
      call told('MPI_Allreduce', 40, 'count=5')
      do i = 1, ranks
         counts(i) = i
         places(i) = 4*(i - 1)
      end do
      call MPI_Gatherv(numbers, counts(rank + 1), MPI_INTEGER, more, counts, places, MPI_INTEGER, 0, &
             MPI_COMM_WORLD, code)
      call told('MPI_Gatherv', 4*(rank + 1), 'root=0')
      call MPI_Allgatherv(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, more, counts, places, MPI_INTEGER, MPI_COMM_WORLD, code)
      call told('MPI_Allgatherv', 4*(rank + 1), '')
      call MPI_Alltoallv(numbers, counts, places, MPI_INTEGER, more, [(counts(rank + 1), i=1, ranks)], places, &
               MPI_INTEGER, MPI_COMM_WORLD, code)
      call told('MPI_Alltoallv', 2*ranks*(ranks + 1), '')
      call MPI_Type_vector(3, 2, 4, MPI_DOUBLE_PRECISION, row, code)
      call MPI_Type_contiguous(2, row, twice, code)
      call MPI_Type_commit(twice, code)
      call MPI_Bcast(data, 2, twice, 0, MPI_COMM_WORLD, code)
      call told('MPI_Bcast', 192, 'count=2 root=0')
      call MPI_Type_free(twice, code)
      call MPI_Type_free(row, code)
      call MPI_Comm_split(MPI_COMM_WORLD, 0, ranks - rank, half, code)
      call MPI_Comm_rank(half, half_rank, code)
      call MPI_Comm_size(half, half_ranks, code)
      call MPI_Alltoall(numbers, 2, MPI_CHARACTER, more, 2, MPI_CHARACTER, half, code)
      i = rank
      rank = half_rank
      call told('MPI_Alltoall', 2*half_ranks, 'sendcount=2')
      rank = i
      call MPI_Comm_free(half, code)
   end subroutine

   subroutine files()
      character(len=40) :: words

      ! The name is padded with blanks.
      path = 'grid.fortran'
      call MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_CREATE + MPI_MODE_RDWR, MPI_INFO_NULL, file, code)
      call on_file('MPI_File_open', '-', '')
      at = rank*80
      write (words, '(a,i0)') 'count=10 offset=', at
      call MPI_File_write_at(file, at, data, 10, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, code)
      call on_file('MPI_File_write_at', '80', words)
      call MPI_File_write_at_all(file, at, data, 10, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, code)
      call on_file('MPI_File_write_at_all', '80', words)
      call MPI_File_iread_at(file, at, others, 10, MPI_REAL8, request, code)
      call on_file('MPI_File_iread_at', '80', words)
      call MPI_Wait(request, MPI_STATUS_IGNORE, code)
      write (words, '(a,a,a)') 'MPI_Wait - ', trim(path), ' - -'
      call say(words)
      call MPI_Type_vector(4, 5, 5*ranks, MPI_DOUBLE_PRECISION, row, code)
      call MPI_Type_commit(row, code)
      at = 40*rank
      write (words, '(a,i0)') 'disp=', at
      call MPI_File_set_view(file, at, MPI_DOUBLE_PRECISION, row, 'native', MPI_INFO_NULL, code)
      call on_file('MPI_File_set_view', '-', words)
      call MPI_File_write_all(file, data, 20, MPI_DOUBLE_PRECISION, MPI_STATUS_IGNORE, code)
      call on_file('MPI_File_write_all', '160', 'count=20')
      at = 0
      call MPI_File_seek(file, at, MPI_SEEK_SET, code)
      call on_file('MPI_File_seek', '-', 'offset=0')
      call MPI_File_read_all_begin(file, others, 20, MPI_DOUBLE_PRECISION, code)
      call on_file('MPI_File_read_all_begin', '160', 'count=20')
      call MPI_File_read_all_end(file, others, MPI_STATUS_IGNORE, code)
      call on_file('MPI_File_read_all_end', '-', '')
      call MPI_Type_free(row, code)
      call MPI_File_close(file, code)
      write (words, '(a,a,a)') 'MPI_File_close - ', trim(path), ' - -'
      call say(words)
   end subroutine
end program
