// Common parts of all bindings: arrays, errors, and calls of Python functions.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>

#include "artel/tensor/named_tensor.h"
#include "artel/tensor/tensor.h"

namespace artel::python {

namespace nb = nanobind;

// Any array with its rows one after another in memory.
using Array = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;

// Shares the memory of the array, which lives as long as any handle to the tensor. Needs the GIL.
Tensor borrowed(const Array& array);
// A NumPy array that shares the memory of the tensor. bf16 becomes f32.
nb::object to_numpy(const Tensor& tensor);
// By name, in order.
nb::dict to_dict(const NamedTensors& tensors);

// A handle to a Python object that any thread may drop.
std::shared_ptr<nb::object> shared(nb::object object);

// Throws an Error with the exception that the Python function `who` has raised. `artel.Error` then
// has the original exception as its cause. Needs the GIL.
[[noreturn]] void rethrow(const std::string& who, nb::python_error& error);

// Calls `body` with the GIL; exceptions of Python become Errors as above.
template <typename Body>
auto with_python(const std::string& who, const Body& body) {
  const nb::gil_scoped_acquire gil;
  try {
    return body();
  } catch (nb::python_error& error) {
    rethrow(who, error);
  } catch (const nb::cast_error&) {
    fail(ErrorKind::invalid_argument, "[{}] returned a value of the wrong type", who);
  }
}

// One for each concept.
void add_errors(nb::module_& module);
void add_data(nb::module_& module);
void add_finetuning(nb::module_& module);
void add_models(nb::module_& module);
void add_parts(nb::module_& module);
void add_runs(nb::module_& module);
void add_saved_runs(nb::module_& module);
void add_program(nb::module_& module);

}  // namespace artel::python
