// Data sets by name.
//
//   artel::data::register_dataset("zeros", [](const artel::data::OpenOptions& options) {
//     const artel::data::DatasetPtr all = artel::data::tensor_dataset(
//         artel::Tensor({100, 4}), artel::Tensor({100}, artel::DType::i32), 2);
//     return artel::data::split(all, options.test_fraction, options.seed);
//   });
//   const artel::data::Split zeros = artel::data::open_set("zeros");
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "artel/data/dataset.h"
#include "artel/data/tables/csv_set.h"
#include "artel/data/tables/table_encoder.h"
#include "artel/tensor/named_tensor.h"

namespace artel::data {

// Images [1, 28, 28] of ten classes from the idx files in a folder, plain or gzip.
Split mnist(const std::filesystem::path& folder);
Split fashion_mnist(const std::filesystem::path& folder);
Split kmnist(const std::filesystem::path& folder);

// Arrays `x_train`, `y_train`, `x_test` and `y_test`; or `x` (also: `data`, `images`, `inputs`) and
// `y` (also: `target`, `labels`, `targets`), from which a random part is cut off for testing.
// Images [n, height, width] and [n, height, width, 1 or 3] of type u8 become planes. Arrays `x2`,
// `x3`, ... (`x2_train`, `x2_test`, ...) are more inputs of each sample.
Split npz(const NamedTensors& arrays, double test_fraction, uint64_t seed);

// The samples of one part of such an archive. `classes` and `class_names` as for tensor_dataset.
DatasetPtr array_dataset(const Tensor& inputs, const Tensor& targets = {}, int64_t classes = 0,
                         std::vector<std::string> class_names = {});

struct OpenOptions {
  std::filesystem::path path;       // file or folder; "": where a set of the catalogue was put
  std::filesystem::path test_path;  // csv, libsvm, labelled_text: a second file
  double test_fraction = 0.1;       // share held out for testing if the set has no test part
  uint64_t seed = 0;                // of that split
  TableOptions table;               // csv
  std::shared_ptr<const TableEncoder> learnt = {};  // csv: encoder of an earlier run
  int64_t image_size = 0;               // folder: side of the images; 0 for the pictures' own size
  bool skip_broken = false;             // folder: leave out pictures that cannot be decoded
  int64_t context = 128;                // text: tokens in a sample
  int64_t stride = 0;                   // text: distance between samples; 0 is `context`
  std::string tokenizer = "character";  // text: see make_tokenizer
  bool lines = false;                   // text: each line is a sample
  bool masked = false;                  // text: masked tokens and next sentences, for BERT
};

// Opens a downloaded set of the catalogue, or data of some format ("csv") at a path. Throws for an
// unknown name, with the nearest known one, and for a set that is not on this machine, with the
// command that downloads it.
Split open_set(const std::string& name, const OpenOptions& options = {});

// A data set of the catalogue, or a data format.
struct SetDefinition {
  std::string name;
  std::function<Split(const OpenOptions&)> open = {};
  // The options that the set uses, by their names in a configuration such as "image_size". An
  // option that no set lists applies to all of them.
  std::vector<std::string> used_options = {};
  bool has_test_part = false;  // true if it always has one
  bool sparse = false;         // its samples can be read as sparse rows
  bool needs_path = true;
  bool fetched = false;           // in the catalogue of `artel data get`
  bool uses_all_options = false;  // may use any option
};

// Registers a custom data set or format for configuration files. Replaces one that the program
// registered earlier. Throws for a built-in name.
void register_dataset(SetDefinition definition);
// Registers a data set that needs no path and may use any option.
void register_dataset(const std::string& name, std::function<Split(const OpenOptions&)> open);

// All names that open_set accepts.
std::vector<std::string> set_names();
// The names of data formats, which need a path: "folder", "csv", ...
std::vector<std::string> kinds_of_own_data();
bool is_sparse(const std::string& name);
// True if the set uses the option (SetDefinition::used_options).
bool uses_option(const std::string& name, const std::string& option);
bool has_test_part(const std::string& name);

}  // namespace artel::data
