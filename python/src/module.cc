// The extension module behind the package `artel`: a thin layer over the public C++ API.
#include "interop.h"

NB_MODULE(_artel, module) {
  using namespace artel::python;
  nanobind::set_leak_warnings(false);  // callbacks of a run that the interpreter's end interrupts
  add_errors(module);
  add_program(module);
  add_data(module);
  add_finetuning(module);
  add_models(module);
  add_parts(module);
  add_runs(module);
  add_saved_runs(module);
}
