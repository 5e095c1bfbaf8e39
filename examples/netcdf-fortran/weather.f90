! Writes a NetCDF-4 file, a record at a time, and reads it back. NetCDF-4 files are HDF5 files.
! usage: weather DIRECTORY. Tells what was written and read of each variable: VARIABLE write|read BYTES.
program weather
   use netcdf
   implicit none
   integer, parameter :: nx = 60, ny = 40, records = 5
   character(len=4096) :: directory
   integer :: file, x, y, time, temperature, pressure, record
   real :: t(nx, ny), u(nx, ny)
   real(8) :: p(nx), q(nx)

   call get_command_argument(1, directory)
   if (len_trim(directory) == 0) error stop 'usage: weather DIRECTORY'
   call check(nf90_create(trim(directory)//'/weather.nc', ior(NF90_NETCDF4, NF90_CLOBBER), file))
   call check(nf90_def_dim(file, 'x', nx, x))
   call check(nf90_def_dim(file, 'y', ny, y))
   call check(nf90_def_dim(file, 'time', NF90_UNLIMITED, time))
   call check(nf90_def_var(file, 'temperature', NF90_REAL, [x, y, time], temperature, &
                           chunksizes=[nx, ny, 1], deflate_level=3, shuffle=.true.))
   call check(nf90_def_var(file, 'pressure', NF90_DOUBLE, [x], pressure, contiguous=.true.))
   call check(nf90_put_att(file, temperature, 'units', 'kelvin'))
   call check(nf90_enddef(file))
   do record = 1, records
      t = record
      call check(nf90_put_var(file, temperature, t, start=[1, 1, record], count=[nx, ny, 1]))
   end do
   p = 1013
   call check(nf90_put_var(file, pressure, p))
   call check(nf90_close(file))

   call check(nf90_open(trim(directory)//'/weather.nc', NF90_NOWRITE, file))
   call check(nf90_inq_varid(file, 'temperature', temperature))
   call check(nf90_inq_varid(file, 'pressure', pressure))
   do record = 1, records
      call check(nf90_get_var(file, temperature, u, start=[1, 1, record], count=[nx, ny, 1]))
      if (any(u /= record)) error stop 'what was read is not what was written'
   end do
   call check(nf90_get_var(file, pressure, q))
   if (any(p /= q)) error stop 'what was read is not what was written'
   call check(nf90_close(file))
   print '(a,i0)', 'temperature write ', records*nx*ny*4, 'temperature read ', records*nx*ny*4, &
      'pressure write ', nx*8, 'pressure read ', nx*8
contains
   subroutine check(status)
      integer, intent(in) :: status

      if (status /= NF90_NOERR) then
         print '(a)', trim(nf90_strerror(status))
         error stop 1
      end if
   end subroutine
end program
