# artel_layer(NAME [SOURCES ...] [LIBRARIES ...] [PUBLIC_LIBRARIES ...]) makes the target artel_NAME of
# the folder artel/NAME: all its .cc files (or SOURCES), linked to the layers that cmake/layers.txt allows.
# A missing folder in the list is skipped, so that layers can be added one by one.
file(STRINGS ${PROJECT_SOURCE_DIR}/cmake/layers.txt ARTEL_LAYER_LINES REGEX "^[a-z]+:")
set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${PROJECT_SOURCE_DIR}/cmake/layers.txt)

function(artel_layer name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LIBRARIES;PUBLIC_LIBRARIES" ${ARGN})
  if(NOT ARG_SOURCES)
    file(GLOB_RECURSE ARG_SOURCES CONFIGURE_DEPENDS *.cc)
  endif()
  add_library(artel_${name} STATIC ${ARG_SOURCES})
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
