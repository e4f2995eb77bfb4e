# artel_layer(NAME [SOURCES ...] [LIBRARIES ...] [PUBLIC_LIBRARIES ...] [APART ...] [COMPUTING ...]) makes the target
# artel_NAME of the folder artel/NAME: all its .cc files (or SOURCES), linked to the layers that
# cmake/layers.txt allows. Folders in the list that do not exist are skipped, so layers can be added one by one.
#
# The sources are compiled as one, vector kernels as a few (docs/decisions/0092-several-sources-at-once.md), except those in
# APART, which share names with others.
#
# Layers that decide what is computed, and do not compute it themselves, are optimised only a little: that takes
# the compiler a quarter less time, and nobody waits for them. COMPUTING are the sources in them that do compute.
set(ARTEL_VECTOR_KERNELS 8)  # in a unit
set(ARTEL_DECIDING_LAYERS graph nn observe plan cluster predict train run dashboard cli)
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/layers.txt ARTEL_LAYER_LINES REGEX "^[a-z]+:")
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${PROJECT_SOURCE_DIR}/cmake/layers.txt)

# Vector kernels are compiled once for each instruction set: such a source includes itself through foreach_target.h. So does a
# unit of several, which are then compiled with it and not by themselves; `units` gets the names of the units.
function(artel_vector_units units sources)
  set(files)
  list(SORT sources COMPARE FILE_BASENAME)  # kernels that share names of constants stay apart wherever their folders are
  while(sources)
    list(LENGTH files number)
    set(unit ${CMAKE_CURRENT_BINARY_DIR}/vector_kernels_${number}.cc)
    list(SUBLIST sources 0 ${ARTEL_VECTOR_KERNELS} part)
    list(REMOVE_ITEM sources ${part})
    set(self "#undef HWY_TARGET_INCLUDE\n#define HWY_TARGET_INCLUDE \"${unit}\"\n")
    list(TRANSFORM part REPLACE "(.+)" "#include \"\\1\"\n" OUTPUT_VARIABLE includes)
    # Each of the sources has named itself there.
    string(CONCAT text ${self} "#include \"hwy/foreach_target.h\"\n" ${includes} ${self})
    file(CONFIGURE OUTPUT ${unit} CONTENT "${text}" @ONLY)
    set_source_files_properties(${part} PROPERTIES HEADER_FILE_ONLY ON)
    list(APPEND files ${unit})
  endwhile()
  set_source_files_properties(${files} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  set(${units} ${files} PARENT_SCOPE)
endfunction()

function(artel_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES;PUBLIC_LIBRARIES;APART;COMPUTING" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB_RECURSE ARG_SOURCES CONFIGURE_DEPENDS *.cc)
  endif()
  add_library(artel_${name} STATIC ${ARG_SOURCES})
  set(kernels)
  foreach(source ${ARG_SOURCES})
    file(STRINGS ${source} is_vector_kernel REGEX "hwy/foreach_target.h" LIMIT_COUNT 1)
    if(is_vector_kernel)
      list(APPEND kernels ${source})
    endif()
  endforeach()
  if(CMAKE_UNITY_BUILD)
    artel_vector_units(units "${kernels}")
    target_sources(artel_${name} PRIVATE ${units})
  endif()
  set_source_files_properties(${ARG_APART} ${ARG_COMPUTING} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  if(name IN_LIST ARTEL_DECIDING_LAYERS)
    target_compile_options(artel_${name} PRIVATE $<$<CONFIG:Release>:-O1>)
    set_source_files_properties(${ARG_COMPUTING} PROPERTIES COMPILE_OPTIONS $<$<CONFIG:Release>:-O3>)
  endif()
  if(ARTEL_TIDY)
    set_target_properties(artel_${name} PROPERTIES CXX_CLANG_TIDY "clang-tidy;--quiet")
  endif()
  target_include_directories(artel_${name} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                                  $<INSTALL_INTERFACE:include>)
  target_link_libraries(artel_${name} PUBLIC ${ARG_PUBLIC_LIBRARIES} PRIVATE ${ARG_LIBRARIES}
                                             $<BUILD_INTERFACE:artel_options>)
  foreach(line ${ARTEL_LAYER_LINES})
    if(line MATCHES "^${name}:(.*)$")
      separate_arguments(allowed UNIX_COMMAND "${CMAKE_MATCH_1}")
    endif()
  endforeach()
  foreach(layer ${allowed})
    if(TARGET artel_${layer})
      target_link_libraries(artel_${name} PUBLIC artel_${layer})
    endif()
  endforeach()
endfunction()

# artel_ignore_headers(NAME): sanitizers look away from the headers of others that tests/sanitizers/sources.txt names.
function(artel_ignore_headers name)
  if(ARTEL_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(artel_${name} PRIVATE -fsanitize-ignorelist=${PROJECT_SOURCE_DIR}/tests/sanitizers/sources.txt)
  endif()
endfunction()
