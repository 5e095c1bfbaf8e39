! DFTracer's annotations for Fortran, by the functions of its C header: for programs that are linked with
! dftracer_stub.c, and for those with DFTracer's own library.
module dftracer
    use, intrinsic :: iso_c_binding, only: c_associated, c_char, c_int, c_null_char, c_null_ptr, c_ptr
    implicit none
    private

    public :: dftracer_region
    public :: dftracer_init, dftracer_init_no_bind, dftracer_fini
    public :: dftracer_region_start, dftracer_region_end, dftracer_region_update
    public :: dftracer_metadata, dftracer_app_metadata, dftracer_mark_used

    ! The library wants texts as long as their region lasts.
    type :: kept_text
        character(kind=c_char, len=:), allocatable :: text
        type(kept_text), allocatable :: others
    end type kept_text

    ! What has begun and not ended. Not to be copied.
    type :: dftracer_region
        private
        type(c_ptr) :: data = c_null_ptr
        type(kept_text), allocatable :: kept
    end type dftracer_region

    interface dftracer_region_update
        module procedure update_int, update_text
    end interface dftracer_region_update

    interface dftracer_app_metadata
        module procedure app_int, app_text
    end interface dftracer_app_metadata

    integer(c_int), parameter :: data_event = 0, metadata_event = 1

    interface
        subroutine c_init(log_file, data_dirs, process_id) bind(c, name='initialize_main')
            import :: c_char, c_ptr
            character(kind=c_char), intent(in), optional :: log_file(*), data_dirs(*)
            type(c_ptr), value :: process_id
        end subroutine c_init

        subroutine c_init_no_bind(log_file, data_dirs, process_id) bind(c, name='initialize_no_bind')
            import :: c_char, c_ptr
            character(kind=c_char), intent(in), optional :: log_file(*), data_dirs(*)
            type(c_ptr), value :: process_id
        end subroutine c_init_no_bind

        subroutine c_fini() bind(c, name='finalize')
        end subroutine c_fini

        function c_begin(name, cat, event_type) result(data) bind(c, name='initialize_region')
            import :: c_char, c_int, c_ptr
            character(kind=c_char), intent(in) :: name(*), cat(*)
            integer(c_int), value :: event_type
            type(c_ptr) :: data
        end function c_begin

        subroutine c_end(data) bind(c, name='finalize_region')
            import :: c_ptr
            type(c_ptr), value :: data
        end subroutine c_end

        subroutine c_update_int(data, key, val) bind(c, name='update_metadata_int')
            import :: c_char, c_int, c_ptr
            type(c_ptr), value :: data
            character(kind=c_char), intent(in) :: key(*)
            integer(c_int), value :: val
        end subroutine c_update_int

        subroutine c_update_text(data, key, val) bind(c, name='update_metadata_string')
            import :: c_char, c_ptr
            type(c_ptr), value :: data
            character(kind=c_char), intent(in) :: key(*), val(*)
        end subroutine c_update_text

        subroutine c_app_int(key, val) bind(c, name='set_app_metadata_int')
            import :: c_char, c_int
            character(kind=c_char), intent(in) :: key(*)
            integer(c_int), value :: val
        end subroutine c_app_int

        subroutine c_app_text(key, val) bind(c, name='set_app_metadata_string')
            import :: c_char
            character(kind=c_char), intent(in) :: key(*), val(*)
        end subroutine c_app_text

        subroutine c_mark_used(name) bind(c, name='mark_used')
            import :: c_char
            character(kind=c_char), intent(in) :: name(*)
        end subroutine c_mark_used
    end interface

contains

    ! An argument that is absent is a null pointer there: the environment counts.
    subroutine dftracer_init(log_file, data_dirs)
        character(*), intent(in), optional :: log_file, data_dirs

        if (present(log_file) .and. present(data_dirs)) then
            call c_init(trim(log_file)//c_null_char, trim(data_dirs)//c_null_char, c_null_ptr)
        else if (present(log_file)) then
            call c_init(log_file=trim(log_file)//c_null_char, process_id=c_null_ptr)
        else if (present(data_dirs)) then
            call c_init(data_dirs=trim(data_dirs)//c_null_char, process_id=c_null_ptr)
        else
            call c_init(process_id=c_null_ptr)
        end if
        call c_mark_used('C_APP'//c_null_char)
    end subroutine dftracer_init

    subroutine dftracer_init_no_bind()
        call c_init_no_bind(process_id=c_null_ptr)
        call c_mark_used('C_APP'//c_null_char)
    end subroutine dftracer_init_no_bind

    subroutine dftracer_fini()
        call c_fini()
    end subroutine dftracer_fini

    subroutine keep(region, text)
        type(dftracer_region), intent(inout) :: region
        character(*), intent(in) :: text
        type(kept_text), allocatable :: new

        allocate (new)
        new%text = trim(text)//c_null_char
        call move_alloc(region%kept, new%others)
        call move_alloc(new, region%kept)
    end subroutine keep

    subroutine begin(region, name, cat, event_type)
        type(dftracer_region), intent(inout) :: region
        character(*), intent(in) :: name, cat
        integer(c_int), intent(in) :: event_type

        call keep(region, cat)
        call keep(region, name)
        region%data = c_begin(region%kept%text, region%kept%others%text, event_type)
    end subroutine begin

    ! cat: the category of the event, C_APP if it is absent.
    subroutine dftracer_region_start(region, name, cat)
        type(dftracer_region), intent(out) :: region
        character(*), intent(in) :: name
        character(*), intent(in), optional :: cat

        if (present(cat)) then
            call begin(region, name, cat, data_event)
        else
            call begin(region, name, 'C_APP', data_event)
        end if
    end subroutine dftracer_region_start

    subroutine dftracer_region_end(region)
        type(dftracer_region), intent(inout) :: region

        if (c_associated(region%data)) call c_end(region%data)
        region%data = c_null_ptr
        if (allocated(region%kept)) deallocate (region%kept)
    end subroutine dftracer_region_end

    subroutine update_int(region, key, val)
        type(dftracer_region), intent(in) :: region
        character(*), intent(in) :: key
        integer, intent(in) :: val

        if (c_associated(region%data)) call c_update_int(region%data, trim(key)//c_null_char, int(val, c_int))
    end subroutine update_int

    subroutine update_text(region, key, val)
        type(dftracer_region), intent(inout) :: region
        character(*), intent(in) :: key, val

        if (.not. c_associated(region%data)) return
        call keep(region, val)
        call c_update_text(region%data, trim(key)//c_null_char, region%kept%text)
    end subroutine update_text

    ! A line of its own, as DFTRACER_C_METADATA writes it.
    subroutine dftracer_metadata(key, val)
        character(*), intent(in) :: key, val
        type(dftracer_region) :: line

        call begin(line, key, val, metadata_event)
        call dftracer_region_end(line)
    end subroutine dftracer_metadata

    subroutine app_int(key, val)
        character(*), intent(in) :: key
        integer, intent(in) :: val

        call c_app_int(trim(key)//c_null_char, int(val, c_int))
    end subroutine app_int

    subroutine app_text(key, val)
        character(*), intent(in) :: key, val

        call c_app_text(trim(key)//c_null_char, trim(val)//c_null_char)
    end subroutine app_text

    subroutine dftracer_mark_used(name)
        character(*), intent(in) :: name

        call c_mark_used(trim(name)//c_null_char)
    end subroutine dftracer_mark_used

end module dftracer
