! Writes two fields to an HDF5 file, one of them in compressed chunks, and reads them back.
! usage: fields DIRECTORY. Says of each call what moved: hdf5 FUNCTION FILE OBJECT BYTES, separated by tabs.
program fields
   use hdf5
   implicit none
   integer, parameter :: n = 256
   integer(hsize_t), parameter :: whole(2) = [n, n], chunk(2) = [64, 32], one(1) = [1]
   integer(hsize_t), parameter :: corner(2) = [16, 8], part(2) = [100, 50]
   character(len=*), parameter :: name = 'fields.h5'
   character(len=4096) :: directory
   integer(hid_t) :: file, group, space, inner, scalar, list, text, density, cells, step, title
   real(8) :: a(n, n), b(n, n), c(100, 50)
   integer :: i, k(n, n), l(n, n), error

   call get_command_argument(1, directory)
   if (len_trim(directory) == 0) error stop 'usage: fields DIRECTORY'
   k = reshape([(mod(i, 97), i=1, n*n)], [n, n])
   a = k*0.25d0

   call h5open_f(error)
   call h5fcreate_f(trim(directory)//'/'//name, H5F_ACC_TRUNC_F, file, error)
   call say('H5Fcreate', '-')
   call h5gcreate_f(file, 'fields', group, error)
   call say('H5Gcreate2', '/fields')
   call h5screate_simple_f(2, whole, space, error)
   call h5screate_f(H5S_SCALAR_F, scalar, error)
   call h5pcreate_f(H5P_DATASET_CREATE_F, list, error)
   call h5pset_chunk_f(list, 2, chunk, error)
   call h5pset_shuffle_f(list, error)
   call h5pset_deflate_f(list, 6, error)

   call h5dcreate_f(group, 'density', H5T_NATIVE_DOUBLE, space, density, error, list)
   call say('H5Dcreate2', '/fields/density')
   call h5dcreate_f(file, 'cells', H5T_STD_I32BE, space, cells, error)
   call say('H5Dcreate2', '/cells')
   call h5dwrite_f(density, H5T_NATIVE_DOUBLE, a, whole, error)
   call say('H5Dwrite', '/fields/density', 8*n*n)
   call h5dwrite_f(cells, H5T_NATIVE_INTEGER, k, whole, error)
   call say('H5Dwrite', '/cells', 4*n*n)

   ! A corner of the field, from an array of its own.
   c = -1
   call h5screate_simple_f(2, part, inner, error)
   call h5sselect_hyperslab_f(space, H5S_SELECT_SET_F, corner, part, error)
   call h5dwrite_f(density, H5T_NATIVE_DOUBLE, c, part, error, inner, space)
   call say('H5Dwrite', '/fields/density', 8*100*50)

   call h5acreate_f(density, 'step', H5T_NATIVE_INTEGER, scalar, step, error)
   call say('H5Acreate2', '/fields/density')
   call h5awrite_f(step, H5T_NATIVE_INTEGER, 42, one, error)
   call say('H5Awrite', '/fields/density', 4)
   call h5aclose_f(step, error)
   call say('H5Aclose', '/fields/density')
   call h5tcopy_f(H5T_NATIVE_CHARACTER, text, error)
   call h5tset_size_f(text, 12_size_t, error)
   call h5acreate_f(file, 'title', text, scalar, title, error)
   call say('H5Acreate2', '/')
   call h5awrite_f(title, text, 'twelve chars', one, error)
   call say('H5Awrite', '/', 12)
   call h5aclose_f(title, error)
   call say('H5Aclose', '/')

   call h5dclose_f(density, error)
   call say('H5Dclose', '/fields/density')
   call h5dclose_f(cells, error)
   call say('H5Dclose', '/cells')
   call h5gclose_f(group, error)
   call say('H5Gclose', '/fields')
   call h5fclose_f(file, error)
   call say('H5Fclose', '-')

   call h5fopen_f(trim(directory)//'/'//name, H5F_ACC_RDONLY_F, file, error)
   call say('H5Fopen', '-')
   call h5dopen_f(file, '/fields/density', density, error)
   call say('H5Dopen2', '/fields/density')
   call h5dopen_f(file, 'cells', cells, error)
   call say('H5Dopen2', '/cells')
   call h5dread_f(density, H5T_NATIVE_DOUBLE, b, whole, error)
   call say('H5Dread', '/fields/density', 8*n*n)
   call h5dread_f(cells, H5T_NATIVE_INTEGER, l, whole, error)
   call say('H5Dread', '/cells', 4*n*n)
   a(17:116, 9:58) = c
   if (error /= 0 .or. any(a /= b) .or. any(k /= l)) error stop 'what was read is not what was written'
   call h5dclose_f(density, error)
   call say('H5Dclose', '/fields/density')
   call h5dclose_f(cells, error)
   call say('H5Dclose', '/cells')
   call h5fclose_f(file, error)
   call say('H5Fclose', '-')
   call h5close_f(error)
contains
   subroutine say(function, object, bytes)
      character(len=*), intent(in) :: function, object
      integer, intent(in), optional :: bytes
      character(len=*), parameter :: tab = achar(9)
      character(len=20) :: number

      if (error /= 0) error stop 'a call of HDF5 failed'
      number = '-'
      if (present(bytes)) write (number, '(i0)') bytes
      print '(a)', 'hdf5'//tab//function//tab//name//tab//object//tab//trim(number)
   end subroutine
end program
