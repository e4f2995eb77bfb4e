// A set of samples with random access: what the loader reads batches from.
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

// A target that losses and metrics leave out.
inline constexpr int32_t kIgnoredTarget = -100;

class SparseRows;
class TableEncoder;
class Tokenizer;

enum class TargetKind {
  none,     // only inputs
  classes,  // whole numbers in [0, classes)
  values,   // real numbers, for regression
};

// One of several inputs that lie side by side in a sample.
struct InputPart {
  std::string name;
  Shape shape;
};

// What every sample of a set has in common.
struct SampleLayout {
  Shape input;                    // of one sample; images are [channels, height, width]
  DType input_type = DType::f32;  // f32, or i32 for tokens
  TargetKind target_kind = TargetKind::classes;
  Shape target;                                     // of one sample; [] for one label
  int64_t classes = 0;                              // for TargetKind::classes
  std::vector<std::string> class_names;             // empty if classes have none
  std::shared_ptr<const Tokenizer> tokenizer = {};  // of text; classes are its tokens
  std::vector<InputPart> parts = {};               // if there are several; `input` is [all of them]
  std::shared_ptr<const TableEncoder> table = {};  // how the columns of a table became this
  int64_t first_index = 1;                         // what the indices of sparse rows count from

  DType target_type() const { return target_kind == TargetKind::values ? DType::f32 : DType::i32; }
  size_t input_bytes() const { return static_cast<size_t>(input.elements()) * size_of(input_type); }
  size_t target_bytes() const {
    if (target_kind == TargetKind::none) return 0;
    return static_cast<size_t>(target.elements()) * size_of(target_type());
  }
};

// Immutable; all functions may be called from several threads at once.
class Dataset {
 public:
  virtual ~Dataset() = default;

  virtual int64_t size() const = 0;
  virtual const SampleLayout& layout() const = 0;

  // Writes the input and the target of sample `index` as arrays of layout().input_type and
  // layout().target_type(). The spans have exactly the sizes that the layout states and are aligned
  // for these types.
  virtual void read(int64_t index, std::span<std::byte> input,
                    std::span<std::byte> target) const = 0;

  // The target alone, for sets whose inputs are expensive to read.
  virtual void read_target(int64_t index, std::span<std::byte> target) const;

  // How people know the sample, such as the path of a picture; empty: by its number alone.
  virtual std::string name(int64_t /*index*/) const { return {}; }

  // The same samples as sparse rows, whose targets are numbers of classes or values; null if that
  // is not what they are. Lives as long as the set.
  virtual const SparseRows* sparse() const { return nullptr; }
};

using DatasetPtr = std::shared_ptr<const Dataset>;

// The two parts of a set: `auto [train, test] = data::mnist(folder);`.
struct Split {
  DatasetPtr train;
  DatasetPtr test;
};

// Samples as the rows of two tensors, in memory or mapped from a file. Inputs of type u8 are
// images: they are kept as bytes and read as f32 in [0, 1]. Those of type i32 and i64 are tokens
// and read as i32. Other numbers are read as f32. Targets of an integer type are classes (`classes`
// of them, or one more than the largest if 0), those of a floating type are values; an empty tensor
// means no targets. `tokenizer` belongs to the tokens, `table` to the columns, if there are any.
// Throws if a label is negative or too large, or if the numbers of rows differ.
DatasetPtr tensor_dataset(Tensor inputs, Tensor targets, int64_t classes = 0,
                          std::vector<std::string> class_names = {},
                          std::shared_ptr<const Tokenizer> tokenizer = {},
                          std::shared_ptr<const TableEncoder> table = {});

// Whether tensor_dataset reads such inputs as tokens.
bool is_token_type(DType type);

// Samples of several inputs: those of sets of equal sizes side by side, with a name for each. The
// inputs are all f32 or all i32; the targets are those of the first set. The first input is the one
// that a network begins with; nn::split_inputs makes the others known to it.
DatasetPtr join_inputs(const std::vector<std::pair<std::string, DatasetPtr>>& sets);

// Some samples of another set, in the given order.
DatasetPtr subset(DatasetPtr set, std::vector<int64_t> samples);

// The samples of another set, each its own target, for autoencoders. Throws for tokens.
DatasetPtr reconstruction(DatasetPtr set);

// Cuts [0, size) in two at random: a function of the seed and the strata alone, each part in
// ascending order. `test_fraction` in [0, 1). `strata` gives a number for each sample, such as its
// class; the test part then has its share of each number, as nearly as possible. Empty: all are
// alike.
struct SplitSamples {
  std::vector<int64_t> train, test;
};
SplitSamples split_samples(int64_t size, double test_fraction, uint64_t seed = 0,
                           std::span<const double> strata = {});
// Stratified by class if each sample has one.
Split split(DatasetPtr set, double test_fraction, uint64_t seed = 0);

// So many samples, chosen at random by the seed, in their order; all if there are no more.
DatasetPtr drawn(DatasetPtr set, int64_t samples, uint64_t seed = 0);
// For cross-validation: cut at random into `folds` parts of nearly equal size, of which number
// `fold`, from 0, is `test`.
Split split_fold(DatasetPtr set, int64_t folds, int64_t fold, uint64_t seed = 0);

}  // namespace artel::data
