# Builds for 64-bit ARM by Debian's cross compiler, with the libraries that tools/check_aarch64 has unpacked.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(root ${CMAKE_CURRENT_LIST_DIR}/../build/aarch64-root)
get_filename_component(root ${root} ABSOLUTE)
set(CMAKE_FIND_ROOT_PATH ${root})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# Debian chooses between several OpenBLAS by links that unpacking does not make.
set(blas openblas-pthread)
set(CMAKE_CXX_FLAGS_INIT
    "-Wno-psabi -idirafter ${root}/usr/include -idirafter ${root}/usr/include/aarch64-linux-gnu -isystem ${root}/usr/include/aarch64-linux-gnu/${blas}")
set(libraries ${root}/usr/lib/aarch64-linux-gnu)
set(CMAKE_EXE_LINKER_FLAGS_INIT
    "-L${libraries} -L${libraries}/${blas} -Wl,-rpath-link,${libraries}:${libraries}/${blas}:${root}/lib/aarch64-linux-gnu")
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${root})
set(ENV{PKG_CONFIG_LIBDIR} ${libraries}/pkgconfig:${root}/usr/share/pkgconfig)
# How its programs run here.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -L ${root} -E LD_LIBRARY_PATH=${libraries}:${libraries}/${blas})
