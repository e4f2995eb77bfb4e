# The public headers are these and all that they include; only they are installed. Each has an example in its leading comment,
# which a test compiles (cmake/header_examples.cmake): so an internal header that a public one includes does not go unnoticed.
set(ARTEL_PUBLIC_HEADERS
    artel/artel.h
    artel/base/file.h artel/base/keys.h artel/base/random.h artel/base/thread_pool.h
    artel/cli/program.h
    artel/comm/codecs/codec.h artel/comm/group.h artel/comm/transports/transports.h
    artel/data/tables/csv.h artel/data/dataset.h artel/data/text/tokenizer.h
    artel/exec/devices.h artel/exec/parameters.h artel/exec/step_memory.h
    artel/graph/graph.h
    artel/nn/layer.h artel/nn/layer_words.h artel/nn/summary.h
    artel/observe/plot.h artel/observe/table.h
    artel/plan/schedule.h
    artel/run/config/config.h artel/run/folder/overview.h
    artel/tensor/named_tensor.h artel/tensor/shape.h artel/tensor/tensor.h
    artel/train/strategies/registry.h artel/train/strategy.h)

# Stores all public headers.
function(artel_public_headers source_dir result)
  set(open ${ARTEL_PUBLIC_HEADERS})
  set(found "")
  while(open)
    list(POP_FRONT open header)
    if(header IN_LIST found)
      continue()
    endif()
    list(APPEND found ${header})
    file(STRINGS ${source_dir}/${header} lines REGEX "^#include \"artel/")
    foreach(line ${lines})
      string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" included "${line}")
      list(APPEND open ${included})
    endforeach()
  endwhile()
  set(${result} ${found} PARENT_SCOPE)
endfunction()
