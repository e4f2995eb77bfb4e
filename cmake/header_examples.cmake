# Writes the examples in the leading comments of all public headers, indented by three spaces there, to a source that tests
# compile; those that register something are run, too. A header without an example must name a source that shows its use.
include(${CMAKE_CURRENT_LIST_DIR}/public_headers.cmake)

# Stores the text of the example, or "".
function(artel_header_example header result)
  file(READ ${header} content)
  # Lists of CMake are cut at semicolons, and brackets keep them together: neither may be in the text while it is one.
  string(ASCII 1 semicolon)
  string(ASCII 2 open)
  string(ASCII 3 close)
  string(REPLACE ";" "${semicolon}" content "${content}")
  string(REPLACE "[" "${open}" content "${content}")
  string(REPLACE "]" "${close}" content "${content}")
  string(REGEX MATCH "^(//[^\n]*\n)+" comment "${content}")
  string(REGEX MATCHALL "//   [^\n]*\n|//\n" code "${comment}")
  set(body "")
  foreach(part ${code})
    string(SUBSTRING "${part}" 2 -1 part)
    string(APPEND body "${part}")
  endforeach()
  string(STRIP "${body}" stripped)
  if(stripped STREQUAL "")
    string(REGEX MATCH "(examples|tests)/[a-z_/]+\\.cc" shown "${comment}")
    if(NOT shown)
      message(FATAL_ERROR "[${header}] is public, because another public header includes it or cmake/public_headers.cmake names it, "
              "but has no example: write one in its leading comment, indented by three spaces, or include it in sources only")
    endif()
  endif()
  string(REPLACE "${semicolon}" ";" body "${body}")
  string(REPLACE "${open}" "[" body "${body}")
  string(REPLACE "${close}" "]" body "${body}")
  set(${result} "${body}" PARENT_SCOPE)
endfunction()

function(artel_write_header_examples source_dir file)
  artel_public_headers(${source_dir} headers)
  string(CONCAT parameters
         "(int argc, char** argv, artel::Cluster& cluster, artel::Trainer& trainer,\n"
         "    const artel::Model& model, const artel::Tensor& images, const artel::Tensor& labels,\n"
         "    const artel::data::DatasetPtr& samples)")
  set(includes "")
  set(examples "")
  set(calls "")
  set(number 0)
  foreach(header ${headers})
    string(APPEND includes "#include <${header}>\n")
    artel_header_example(${source_dir}/${header} body)
    math(EXPR number "${number} + 1")
    string(APPEND examples "\n// ${header}\nvoid example_${number}${parameters} {\n  {\n${body}  }\n}\n")
    if(body MATCHES "register_")
      string(APPEND calls "  example_${number}(0, nullptr, cluster, trainer, model, images, labels, samples);\n")
    endif()
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${source_dir}/${header})
  endforeach()
  string(CONCAT text
         "// Made by cmake/header_examples.cmake.\n#include <gtest/gtest.h>\n\n#include <cmath>\n#include <cstdlib>\n\n"
         "${includes}\nnamespace {\n${examples}\n"
         "[[noreturn]] void run_those_that_register() {\n  artel::Cluster cluster;\n"
         "  const artel::Model model = artel::nn::dense(2);\n  artel::Trainer trainer(cluster, model);\n"
         "  const artel::Tensor images({4, 4});\n  const artel::Tensor labels({4}, artel::DType::i32);\n"
         "  const artel::data::DatasetPtr samples = artel::data::tensor_dataset(images, labels);\n"
         "${calls}  std::exit(0);\n}\n\n"
         "// In a process of their own, before other tests register anything.\n"
         "TEST(HeaderExamplesDeathTest, ThoseThatRegisterRun) {\n"
         "  GTEST_FLAG_SET(death_test_style, \"threadsafe\");  // a library may have threads\n"
         "  EXPECT_EXIT(run_those_that_register(), testing::ExitedWithCode(0), \"\");\n}\n\n}  // namespace\n")
  set(before "")
  if(EXISTS ${file})
    file(READ ${file} before)
  endif()
  if(NOT before STREQUAL text)  # else all that includes it would be compiled again
    file(WRITE ${file} "${text}")
  endif()
endfunction()
