#include "interop.h"

#include <filesystem>

#include "artel/base/disk.h"
#include "artel/base/error.h"
#include "artel/base/text.h"

namespace artel::python {
namespace {

// The last exception raised by a user's function, until it is reported by an Error.
PyObject* raised = nullptr;

std::optional<DType> type_of(nb::dlpack::dtype type) {
  using Code = nb::dlpack::dtype_code;
  const auto code = static_cast<Code>(type.code);
  if (type.lanes != 1) return {};
  if (code == Code::Bool) return DType::boolean;
  if (code == Code::Bfloat) return DType::bf16;
  if (code == Code::Float)
    return type.bits == 32   ? std::optional(DType::f32)
           : type.bits == 64 ? std::optional(DType::f64)
           : type.bits == 16 ? std::optional(DType::f16)
                             : std::nullopt;
  if (code == Code::UInt) return type.bits == 8 ? std::optional(DType::u8) : std::nullopt;
  if (code != Code::Int) return {};
  switch (type.bits) {
    case 8:
      return DType::i8;
    case 16:
      return DType::i16;
    case 32:
      return DType::i32;
    case 64:
      return DType::i64;
    default:
      return {};
  }
}

nb::dlpack::dtype dlpack_type(DType type) {
  switch (type) {
    case DType::f32:
      return nb::dtype<float>();
    case DType::f64:
      return nb::dtype<double>();
    case DType::f16:
      return {static_cast<uint8_t>(nb::dlpack::dtype_code::Float), 16, 1};
    case DType::i8:
      return nb::dtype<int8_t>();
    case DType::u8:
      return nb::dtype<uint8_t>();
    case DType::i16:
      return nb::dtype<int16_t>();
    case DType::i32:
      return nb::dtype<int32_t>();
    case DType::i64:
      return nb::dtype<int64_t>();
    case DType::boolean:
      return nb::dtype<bool>();
    case DType::bf16:
      break;
  }
  fail(ErrorKind::internal, "an array of type {}", to_string(type));
}

void set_python_error(PyObject* type, const Error& error) {
  nb::object instance = nb::handle(type)(printable_line(error.what()));  // names may have any text
  instance.attr("kind") = std::string(to_string(error.kind()));
  if (PyObject* const cause = std::exchange(raised, nullptr)) {
    instance.attr("__suppress_context__") = true;
    PyException_SetCause(instance.ptr(), cause);  // takes the reference
  }
  PyErr_SetObject(type, instance.ptr());
}

}  // namespace

Tensor borrowed(const Array& array) {
  const std::optional<DType> type = type_of(array.dtype());
  require(type.has_value(), ErrorKind::unsupported,
          "got an array of {}-bit elements of a type that networks cannot read, expected float32, "
          "float64, float16, int8, uint8, int16, int32, int64 or bool; try x.astype(numpy.float32)",
          static_cast<int>(array.dtype().bits));
  std::vector<int64_t> extents;
  for (size_t i = 0; i < array.ndim(); ++i) extents.push_back(static_cast<int64_t>(array.shape(i)));
  // Data sets and predictions only read it.
  auto* const data = static_cast<std::byte*>(const_cast<void*>(array.data()));
  const std::shared_ptr<const void> keeper(new Array(array), [](const Array* kept) {
    const nb::gil_scoped_acquire gil;
    delete kept;
  });
  return Tensor(Shape(std::move(extents)), *type, data, keeper);
}

nb::object to_numpy(const Tensor& tensor) {
  auto* const kept = new Tensor(tensor.dtype() == DType::bf16 ? tensor.to(DType::f32) : tensor);
  const nb::capsule owner(kept, [](void* data) noexcept { delete static_cast<Tensor*>(data); });
  std::vector<size_t> extents;
  for (const int64_t extent : kept->shape().extents())
    extents.push_back(static_cast<size_t>(extent));
  const nb::ndarray<nb::numpy> array(kept->raw(), extents.size(), extents.data(), owner, nullptr,
                                     dlpack_type(kept->dtype()));
  return nb::cast(array, nb::rv_policy::reference);
}

nb::dict to_dict(const NamedTensors& tensors) {
  nb::dict result;
  for (const NamedTensor& each : tensors) result[each.name.c_str()] = to_numpy(each.tensor);
  return result;
}

std::shared_ptr<nb::object> shared(nb::object object) {
  return {new nb::object(std::move(object)), [](nb::object* kept) {
            const nb::gil_scoped_acquire gil;
            delete kept;
          }};
}

void rethrow(const std::string& who, nb::python_error& error) {
  const std::string type = nb::cast<std::string>(error.type().attr("__name__"));
  const std::string text = nb::cast<std::string>(nb::str(error.value()));
  Py_XDECREF(std::exchange(raised, error.value().inc_ref().ptr()));
  fail(ErrorKind::cancelled, "[{}] raised {}{}{}", who, type, text.empty() ? "" : ": ", text);
}

void add_errors(nb::module_& module) {
  nb::object type = nb::steal(PyErr_NewExceptionWithDoc(
      "artel.Error",
      "What went wrong, in one line that names the culprit, as the program prints it.\n\n"
      "`kind` is one of \"invalid argument\", \"shape\", \"not found\", \"input/output\",\n"
      "\"corrupt data\", \"unsupported\", \"memory\", \"numeric\", \"communication\",\n"
      "\"timeout\", \"cancelled\", and \"internal\".",
      PyExc_RuntimeError, nullptr));
  type.attr("kind") = "";
  module.attr("Error") = type;
  nb::register_exception_translator(
      [](const std::exception_ptr& thrown, void* error_type) {
        auto* const type = static_cast<PyObject*>(error_type);
        try {
          std::rethrow_exception(thrown);
        } catch (const Error& error) {
          set_python_error(type, error);
        } catch (const std::filesystem::filesystem_error& error) {
          set_python_error(type, io_error(error));
        }
      },
      type.release().ptr());
}

}  // namespace artel::python
