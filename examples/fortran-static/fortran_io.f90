! Each kind of Fortran I/O once. usage: fortran_io DIRECTORY
!
! Prints one line per file and direction:
!    FILE read|write N statements N calls N bytes
! "calls" are the read and write system calls that libgfortran makes of the statements, so that a
! trace can be compared with the program's own words. They are known because a flush makes one
! call of what was written since the last one, as the end of a direct record does; because what is
! read passes by the buffer (128 KiB for unformatted files) when it is larger than half of it; and
! because a small formatted file (buffer: 8 KiB) is read at once, and once more for its end.
program fortran_io
   use iso_fortran_env, only: real64, int64, iostat_end
   implicit none
   integer, parameter :: n = 10000, items = 20, records = 10, lines = 50, added = 10
   integer, parameter :: item_bytes = 8*n, line_bytes = 20
   character(len=4096) :: dir

   call get_command_argument(1, dir)
   if (len_trim(dir) == 0) error stop 'usage: fortran_io DIRECTORY'
   call stream_file()
   call direct_file()
   call text_file()
   call namelist_file()
   call scratch_file()
   call deleted_file()
contains
   function values(shift) result(a)
      integer, intent(in) :: shift
      real(real64), allocatable :: a(:)
      integer :: i
      a = [(real(i + shift, real64), i = 1, n)]
   end function

   ! Unformatted stream: written, rewound, read, and one item read again at its position.
   subroutine stream_file()
      real(real64), allocatable :: a(:)
      integer :: unit, i
      allocate(a(n))
      open(newunit=unit, file=trim(dir)//'/stream.bin', form='unformatted', access='stream', &
           action='readwrite', status='replace')
      do i = 1, items
         write(unit) values(i)
         flush(unit)
      end do
      rewind(unit)
      do i = 1, items
         read(unit) a
         if (any(a /= values(i))) error stop 'stream.bin differs'
      end do
      read(unit, pos=1 + 3*item_bytes) a
      if (any(a /= values(4))) error stop 'stream.bin differs at a position'
      close(unit)
      call report('stream.bin', 'write', items, items, items*item_bytes)
      call report('stream.bin', 'read', items + 1, items + 1, (items + 1)*item_bytes)
   end subroutine

   ! Direct access: records written in order, every second one read from the end.
   subroutine direct_file()
      real(real64), allocatable :: a(:)
      integer :: unit, i
      allocate(a(n))
      open(newunit=unit, file=trim(dir)//'/direct.bin', form='unformatted', access='direct', &
           recl=item_bytes, status='replace')
      do i = 1, records
         write(unit, rec=i) values(i)
      end do
      do i = records, 1, -2
         read(unit, rec=i) a
         if (any(a /= values(i))) error stop 'direct.bin differs'
      end do
      close(unit)
      call report('direct.bin', 'write', records, records, records*item_bytes)
      call report('direct.bin', 'read', records/2, records/2, records/2*item_bytes)
   end subroutine

   ! Formatted sequential: lines, each flushed; appended to; read to the end.
   subroutine text_file()
      character(len=:), allocatable :: path
      integer :: unit, i, k, status, got, bytes
      real :: x
      logical :: there

      path = trim(dir)//'/text.txt'
      open(newunit=unit, file=path, form='formatted', status='replace')
      do i = 1, lines
         write(unit, '(i6,1x,f12.4)') i, i*0.5
         flush(unit)
      end do
      close(unit)

      open(newunit=unit, file=path, form='formatted', status='old', position='append')
      do i = lines + 1, lines + added
         write(unit, '(i6,1x,f12.4)') i, i*0.5
         flush(unit)
      end do
      close(unit)

      inquire(file=path, exist=there, size=bytes)
      if (.not. there .or. bytes /= (lines + added)*line_bytes) error stop 'text.txt: wrong size'
      open(newunit=unit, file=path, form='formatted', status='old', action='read')
      got = 0
      do
         read(unit, '(i6,1x,f12.4)', iostat=status) k, x
         if (status == iostat_end) exit
         if (status /= 0) error stop 'text.txt cannot be read'
         got = got + 1
         if (k /= got .or. x /= got*0.5) error stop 'text.txt differs'
      end do
      if (got /= lines + added) error stop 'text.txt is short'
      close(unit)
      call report('text.txt', 'write', lines + added, lines + added, bytes)
      call report('text.txt', 'read', got + 1, 2, bytes)
   end subroutine

   ! Namelist: written at once, rewound, read back.
   subroutine namelist_file()
      integer :: steps, unit, bytes
      real(real64) :: dt
      character(len=16) :: scheme
      namelist /run/ steps, dt, scheme

      steps = 1000
      dt = 0.125_real64
      scheme = 'upwind'
      open(newunit=unit, file=trim(dir)//'/run.nml', form='formatted', status='replace')
      write(unit, nml=run)
      flush(unit)
      inquire(unit=unit, size=bytes)
      rewind(unit)
      steps = 0
      dt = 0
      scheme = ''
      read(unit, nml=run)
      if (steps /= 1000 .or. dt /= 0.125_real64 .or. scheme /= 'upwind') error stop 'run.nml differs'
      close(unit)
      call report('run.nml', 'write', 1, 1, bytes)
      call report('run.nml', 'read', 1, 2, bytes)
   end subroutine

   ! Scratch: a file without a name of ours, gfortrantmp?????? in TMPDIR, unlinked while open.
   subroutine scratch_file()
      real(real64), allocatable :: a(:)
      integer :: unit
      allocate(a(n))
      open(newunit=unit, form='unformatted', access='stream', status='scratch')
      write(unit) values(1)
      rewind(unit)
      read(unit) a
      if (any(a /= values(1))) error stop 'the scratch file differs'
      close(unit)
      call report('scratch', 'write', 1, 1, item_bytes)
      call report('scratch', 'read', 1, 1, item_bytes)
   end subroutine

   ! Written and deleted when it is closed.
   subroutine deleted_file()
      integer :: unit
      logical :: there
      open(newunit=unit, file=trim(dir)//'/deleted.bin', form='unformatted', access='stream', &
           status='replace')
      write(unit) values(1)
      close(unit, status='delete')
      inquire(file=trim(dir)//'/deleted.bin', exist=there)
      if (there) error stop 'deleted.bin is still there'
      call report('deleted.bin', 'write', 1, 1, item_bytes)
   end subroutine

   subroutine report(name, direction, statements, calls, bytes)
      character(len=*), intent(in) :: name, direction
      integer, intent(in) :: statements, calls, bytes
      print '(a,1x,a,3(1x,i0,1x,a))', name, direction, statements, 'statements', calls, 'calls', &
         bytes, 'bytes'
   end subroutine
end program
