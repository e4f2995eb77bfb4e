// Builds an ONNX model node by node.
//
//   OnnxWriter model;
//   model.input("x", {1, 4}, DType::f32);
//   model.output("y", model.node("Relu", {"x"}), {1, 4}, DType::f32);
//   write_file_atomically("relu.onnx", model.file());
#pragma once

#include <set>
#include <string>
#include <variant>
#include <vector>

#include "artel/tensor/tensor.h"

namespace artel::checkpoint {

// The operator set version of the model.
inline constexpr int64_t kOnnxOpset = 17;

struct OnnxAttribute {
  std::string name;
  std::variant<int64_t, double, std::vector<int64_t>> value;
};

class OnnxWriter {
 public:
  void input(const std::string& name, const Shape& shape, DType type);
  // Makes the value `value` an output called `name`, which must be a new name.
  void output(const std::string& name, const std::string& value, const Shape& shape, DType type);
  // Stores a constant tensor of type f32, i8, i32, i64, or boolean. Returns its name.
  std::string tensor(const std::string& name, const Tensor& value);
  std::string numbers(const std::vector<int64_t>& values);
  std::string number(float value);
  // Adds a node with one output. Returns the name of the output.
  std::string node(const std::string& op, const std::vector<std::string>& inputs,
                   const std::vector<OnnxAttribute>& attributes = {});

  // The content of the file. Throws if it exceeds the format's limit of 2 GiB.
  std::string file() const;

 private:
  std::string fresh(const std::string& stem);
  void add_node(const std::string& op, const std::vector<std::string>& inputs,
                const std::string& output, const std::vector<OnnxAttribute>& attributes);

  std::string nodes_, tensors_, inputs_, outputs_;
  std::set<std::string> names_;
  int64_t count_ = 0;
};

}  // namespace artel::checkpoint
