#include "artel/capi/artel_c.h"

#include <cstring>
#include <exception>
#include <memory>
#include <string>

#include "artel/base/error.h"
#include "artel/predict/batches.h"
#include "artel/run/config/advice.h"
#include "artel/run/folder/saved_run.h"

struct artel_model {
  artel::SavedRun run;
  int64_t inputs = 0, outputs = 0;
};

namespace artel {
namespace {

std::string& last_failure() {
  thread_local std::string message;
  return message;
}

// Calls body(); returns `failed` and keeps the message if it throws.
template <typename Result, typename Body>
Result guarded(Result failed, const Body& body) {
  try {
    return body();
  } catch (const std::exception& error) {
    last_failure() = error.what();
  } catch (...) {
    last_failure() = "unknown error";
  }
  return failed;
}

template <typename T>
int predict_rows(artel_model* model, const T* inputs, int64_t rows, float* outputs) {
  return guarded(-1, [&] {
    require(model && inputs && outputs, ErrorKind::invalid_argument,
            "artel_predict: got a null pointer, expected a model, inputs, and outputs");
    require(rows > 0, ErrorKind::invalid_argument, "artel_predict: got {} rows, expected 1 or more",
            rows);
    const TensorType type = batch_of(model->run.sample(), rows);
    require(type.dtype == DTypeOf<T>::value, ErrorKind::invalid_argument,
            "artel_predict: got {} values, expected {}; try {}", to_string(DTypeOf<T>::value),
            to_string(type.dtype),
            type.dtype == DType::i32 ? "artel_predict_tokens" : "artel_predict");
    Tensor x(type.shape, type.dtype);
    std::memcpy(x.raw(), inputs, x.bytes());
    const Tensor y = model->run.trainer->predict(x);
    std::memcpy(outputs, y.raw(), y.bytes());
    return 0;
  });
}

}  // namespace
}  // namespace artel

artel_model* artel_open(const char* run) {
  return artel::guarded<artel_model*>(nullptr, [&] {
    artel::require(run != nullptr, artel::ErrorKind::invalid_argument,
                   "artel_open: got a null pointer, expected the folder of a run");
    auto model = std::make_unique<artel_model>(artel_model{artel::open_run({.path = run})});
    const artel::TensorType sample = model->run.sample();
    model->inputs = sample.shape.elements();
    model->outputs =
        artel::output_of(artel::make_model(model->run.config.model, model->run.layout), sample)
            .elements();
    return model.release();
  });
}

void artel_free(artel_model* model) { delete model; }

int64_t artel_input_size(const artel_model* model) { return model ? model->inputs : 0; }
int64_t artel_output_size(const artel_model* model) { return model ? model->outputs : 0; }
int artel_takes_tokens(const artel_model* model) {
  return model && model->run.sample().dtype == artel::DType::i32 ? 1 : 0;
}

int artel_predict(artel_model* model, const float* inputs, int64_t rows, float* outputs) {
  return artel::predict_rows(model, inputs, rows, outputs);
}

int artel_predict_tokens(artel_model* model, const int32_t* tokens, int64_t rows, float* outputs) {
  return artel::predict_rows(model, tokens, rows, outputs);
}

const char* artel_last_error(void) { return artel::last_failure().c_str(); }
