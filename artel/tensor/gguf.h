// GGUF, the file format of llama.cpp: properties, tokenizer, and weights of a language model.
//
//   const artel::Gguf file = artel::parse_gguf(artel::map_file("SmolLM2-135M-Instruct.Q4_1.gguf"));
//   const int64_t layers = file.integer("llama.block_count");
#pragma once

#include <map>
#include <string>
#include <variant>
#include <vector>

#include "artel/base/bytes.h"
#include "artel/tensor/quantised.h"
#include "artel/tensor/tensor.h"

namespace artel {

// Storage type of a tensor. The q types have blocks of 32 elements with a scale and, for q4_1, a
// minimum.
enum class GgufType { f32, f16, bf16, q4_0, q4_1, q8_0 };

struct GgufTensor {
  std::string name;
  Shape shape;  // row-major, the reverse of the file's order
  GgufType type = GgufType::f32;
  Bytes bytes;  // as stored
};

struct Gguf {
  // Integers and booleans are stored as double.
  using Value = std::variant<double, std::string, std::vector<double>, std::vector<std::string>>;

  std::string name;  // file name for messages
  std::map<std::string, Value> values;
  std::vector<GgufTensor> tensors;

  bool has(const std::string& key) const { return values.contains(key); }
  // These throw an Error of kind corrupt if the key is missing or has another type.
  double number(const std::string& key) const;
  int64_t integer(const std::string& key) const;  // nonnegative
  const std::string& text(const std::string& key) const;
  const std::vector<double>& numbers(const std::string& key) const;
  const std::vector<std::string>& texts(const std::string& key) const;
};

bool is_gguf(const Bytes& bytes);
// Tensors are views of `bytes`. Throws an Error of kind corrupt for a damaged file, and of kind
// unsupported for other versions and storage types.
Gguf parse_gguf(const Bytes& bytes);

// Expands a quantised tensor to f32. Keeps f32, f16, and bf16.
Tensor numbers_of(const GgufTensor& tensor);
// True for q4_0, q4_1, and q8_0, which can be used without expanding them.
bool is_quantised(const GgufTensor& tensor);
QuantisedMatrix quantised_matrix(const GgufTensor& tensor);

}  // namespace artel
