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

#include "artel/data/csv_set.h"
#include "artel/data/dataset.h"
#include "artel/data/table_encoder.h"
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

struct OpenOptions {
  std::filesystem::path path;       // file or folder; "": where a set of the catalogue was put
  std::filesystem::path test_path;  // csv, libsvm, labelled_text: a second file
  double test_fraction = 0.1;       // share held out for testing if the set has no test part
  uint64_t seed = 0;                // of that split
  TableOptions table;               // csv
  std::shared_ptr<const TableEncoder> learnt = {};  // csv: what was learnt from it before
  int64_t image_size = 0;               // folder: side of the images; 0: as the pictures have it
  bool skip_broken = false;             // folder: leave out pictures that cannot be decoded
  int64_t context = 128;                // text: tokens in a sample
  int64_t stride = 0;                   // text: distance between samples; 0 is `context`
  std::string tokenizer = "character";  // text: see make_tokenizer
  bool lines = false;                   // text: each line is a sample
  bool masked = false;                  // text: masked tokens and next sentences, for BERT
};

// Opens a set of the catalogue, which `get_set` may have fetched, or "folder", "csv", "npz", "npy",
// "idx", "libsvm", "text" or "labelled_text" at a path.
// Throws for an unknown name, suggesting the nearest one, and for a set that is not on this
// machine, saying how to get it.
Split open_set(const std::string& name, const OpenOptions& options = {});

// Makes a data set of your own known by its name, for configuration files. `open` sees what the
// configuration says and may need no path. Throws for a name that is taken.
void register_dataset(const std::string& name, std::function<Split(const OpenOptions&)> open);

// All names that open_set knows.
std::vector<std::string> set_names();
// Those that stand for a kind of data at a path: "folder", "csv", ...
std::vector<std::string> kinds_of_own_data();
// Whether the samples of such a set can be read as sparse rows.
bool is_sparse(const std::string& name);
// Whether such a set heeds an option that is about certain kinds of data, by its name in a
// configuration such as "image_size". Sets that a program has registered may heed any.
bool heeds(const std::string& name, const std::string& option);
// Whether such a set always has a test part of its own.
bool has_test_part(const std::string& name);

}  // namespace artel::data
