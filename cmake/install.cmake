# `cmake --install` and find_package(artel): the target artel::artel has all layers except the command line and the
# dashboard; artel::program has these, too, for programs with commands of their own.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(artel_library INTERFACE)
add_library(artel::artel ALIAS artel_library)
set_target_properties(artel_library PROPERTIES EXPORT_NAME artel)
target_compile_features(artel_library INTERFACE cxx_std_20)
foreach(line ${ARTEL_LAYER_LINES})
  string(REGEX MATCH "^([a-z]+):" _ "${line}")
  set(layer ${CMAKE_MATCH_1})
  if(TARGET artel_${layer})
    if(NOT layer MATCHES "^(cli|dashboard|capi)$")
      target_link_libraries(artel_library INTERFACE artel_${layer})
    endif()
    install(TARGETS artel_${layer} EXPORT artel)
  endif()
endforeach()

add_library(artel_program INTERFACE)
add_library(artel::program ALIAS artel_program)
set_target_properties(artel_program PROPERTIES EXPORT_NAME program)
target_link_libraries(artel_program INTERFACE artel_library artel_cli)

get_target_property(libraries artel_comm LINK_LIBRARIES)
set(ARTEL_USES_MPI OFF)
if(MPI::MPI_C IN_LIST libraries)
  set(ARTEL_USES_MPI ON)
endif()

set(folder ${CMAKE_INSTALL_LIBDIR}/cmake/artel)
install(TARGETS artel_library artel_program EXPORT artel)
# The C interface: libartel.so and its header.
install(TARGETS artel_c LIBRARY)
install(FILES artel/capi/artel_c.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/artel/capi)
install(EXPORT artel NAMESPACE artel:: DESTINATION ${folder} FILE artelTargets.cmake)
include(cmake/public_headers.cmake)
artel_public_headers(${PROJECT_SOURCE_DIR} headers)
foreach(header ${headers})
  cmake_path(GET header PARENT_PATH parent)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${parent})
endforeach()
configure_package_config_file(cmake/artelConfig.cmake.in ${PROJECT_BINARY_DIR}/artelConfig.cmake
                              INSTALL_DESTINATION ${folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/artelConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/artelConfig.cmake ${PROJECT_BINARY_DIR}/artelConfigVersion.cmake
        DESTINATION ${folder})
