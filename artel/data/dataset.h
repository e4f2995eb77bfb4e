// A set of samples with random access, the source of the loader.
//
//   const artel::data::DatasetPtr set = artel::data::tensor_dataset(images, labels);
//   const auto [train, test] = artel::data::split(set, 0.1);
//   artel::println("{} samples {}", train->size(), to_string(train->layout().input));
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "artel/tensor/tensor.h"

namespace artel::data {

// A target that losses and metrics ignore.
inline constexpr int32_t kIgnoredTarget = -100;

class SparseRows;
class TableEncoder;
class Tokenizer;

enum class TargetKind {
  none,     // only inputs
  classes,  // whole numbers in [0, classes)
  values,   // real numbers, for regression
};

// One of several inputs, which are concatenated in a sample.
struct InputPart {
  std::string name;
  Shape shape;
};

// The common layout of all samples of a set.
struct SampleLayout {
  Shape input;                    // of one sample; images are [channels, height, width]
  DType input_type = DType::f32;  // f32, or i32 for tokens
  TargetKind target_kind = TargetKind::classes;
  Shape target;                                     // of one sample; [] for one label
  int64_t classes = 0;                              // for TargetKind::classes
  std::vector<std::string> class_names;             // empty if unnamed
  std::shared_ptr<const Tokenizer> tokenizer = {};  // for text, whose classes are tokens
  std::vector<InputPart> parts = {};  // for several inputs; `input` is their concatenation
  std::shared_ptr<const TableEncoder> table = {};  // encoder of the columns of a table
  int64_t first_index = 1;                         // first index of sparse rows, 0 or 1

  DType target_type() const { return target_kind == TargetKind::values ? DType::f32 : DType::i32; }
  size_t input_bytes() const { return static_cast<size_t>(input.elements()) * size_of(input_type); }
  size_t target_bytes() const {
    if (target_kind == TargetKind::none) return 0;
    return static_cast<size_t>(target.elements()) * size_of(target_type());
  }
};

// Immutable and thread safe.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual const SampleLayout& layout() const = 0;

  // Writes the input and the target of sample `index` as arrays of layout().input_type and
  // layout().target_type(). The spans must have exactly the sizes of the layout and be aligned for
  // these types.
  virtual void read(int64_t index, std::span<std::byte> input,
                    std::span<std::byte> target) const = 0;

  // Reads only the target, for sets whose inputs are expensive to read.
  virtual void read_target(int64_t index, std::span<std::byte> target) const;

  // A name of the sample for users, such as the path of a picture. Empty if it has only a number.
  virtual std::string name(int64_t /*index*/) const { return {}; }

  // The samples as sparse rows, with class numbers or values as targets; null if they are not
  // sparse. Lives as long as the set.
  virtual const SparseRows* sparse() const { return nullptr; }
};

using DatasetPtr = std::shared_ptr<const Dataset>;

// The two parts of a set: `auto [train, test] = data::mnist(folder);`.
struct Split {
  DatasetPtr train;
  DatasetPtr test;
};

// Samples from the rows of two tensors, in memory or mapped from a file. u8 inputs are images:
// stored as bytes and read as f32 in [0, 1]. i32 and i64 inputs are tokens and read as i32. Other
// numbers are read as f32. Integer targets are classes (`classes` of them, or one more than the
// largest if 0), floating-point targets are values, and an empty tensor means no targets.
// `tokenizer` belongs to tokens, `table` to columns. Throws if a label is negative or too large, or
// if the numbers of rows differ.
DatasetPtr tensor_dataset(Tensor inputs, Tensor targets, int64_t classes = 0,
                          std::vector<std::string> class_names = {},
                          std::shared_ptr<const Tokenizer> tokenizer = {},
                          std::shared_ptr<const TableEncoder> table = {});

// True if tensor_dataset reads inputs of this type as tokens.
bool is_token_type(DType type);

// Combines sets of equal size into samples with several named inputs. Inputs must be all f32 or all
// i32; the targets are those of the first set. A network starts with the first input;
// nn::split_inputs provides the others.
DatasetPtr join_inputs(const std::vector<std::pair<std::string, DatasetPtr>>& sets);

// A selection of samples of another set, in the given order.
DatasetPtr subset(DatasetPtr set, std::vector<int64_t> samples);

// The samples of another set with themselves as targets, for autoencoders. Throws for tokens.
DatasetPtr reconstruction(DatasetPtr set);

// Splits [0, size) at random, reproducibly for a seed. The indices of each part are ascending.
// `test_fraction` is in [0, 1). `strata` has a number per sample, such as its class; the test part
// gets a proportional share of each. Without strata, or with fewer than four samples in each on
// average, the split is not stratified.
struct SplitSamples {
  std::vector<int64_t> train, test;
};
SplitSamples split_samples(int64_t size, double test_fraction, uint64_t seed = 0,
                           std::span<const double> strata = {});
// Splits a set, stratified by class if each sample has one.
Split split(DatasetPtr set, double test_fraction, uint64_t seed = 0);

// A random selection of `samples` samples, in order; all if the set has fewer. Stratified like
// `split`.
DatasetPtr drawn(DatasetPtr set, int64_t samples, uint64_t seed = 0);
// Splits at random into `folds` parts of nearly equal size, for cross-validation. Part `fold`,
// counted from 0, is the test part. Stratified like `split`.
Split split_fold(DatasetPtr set, int64_t folds, int64_t fold, uint64_t seed = 0);

}  // namespace artel::data
