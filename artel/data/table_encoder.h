// How the columns of a table become the inputs and the target of samples, as learnt from the rows
// for training and kept with a run.
//
//   const artel::data::Table table = artel::data::parse_csv(artel::map_file("houses.csv"));
//   const artel::data::TableEncoder encoder(table, {0, 1, 2}, {.target = "price"});
//   const artel::data::DatasetPtr train = encoder.encode(table, {0, 1, 2});
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "artel/data/csv.h"
#include "artel/data/dataset.h"
#include "artel/data/table_feature.h"
#include "artel/data/unseen_names.h"

namespace artel::data {

enum class Task {
  automatic,  // classes if the target is categorical, or has at most 20 different whole numbers
  classes,
  values,
};

struct TableOptions {
  std::string target = {};  // name of the column; "" is the last one
  Task task = Task::automatic;
  std::vector<std::string> ignore = {};       // columns that are left out
  std::vector<std::string> categorical = {};  // columns whose numbers are names
  bool scale_target = true;                   // values are learnt with mean 0 and deviation 1
  bool decimal_comma = false;                 // numbers are written as 1,5
};

// Only the results are rounded to f32, so numbers far from 0 that differ little, such as
// timestamps, keep their digits.
class TableEncoder {
 public:
  // A first column without a name that numbers the rows, as pandas writes it, is left out, which
  // the log says. Throws for columns that do not exist and, without scale_target, if values of the
  // target differ too little for f32.
  TableEncoder(const Table& table, const std::vector<int64_t>& rows, const TableOptions& options);

  const std::vector<TableFeature>& features() const { return features_; }
  int64_t width() const;
  const std::string& target() const { return target_; }
  const std::vector<std::string>& class_names() const { return class_names_; }  // of classes
  // A value of the target is offset + scale * what the network learns.
  double target_offset() const { return offset_; }
  double target_scale() const { return scale_; }

  // Columns are found by name. Throws if one is missing, if a target is missing, if its class was
  // not among the training rows, or if names would take far more memory than the table.
  DatasetPtr encode(const Table& table, const std::vector<int64_t>& rows) const;
  // The same as tensors; what data set they are.
  struct Tensors {
    Tensor inputs, targets;
  };
  Tensors encode_rows(const Table& table, const std::vector<int64_t>& rows) const;
  // Calls use(first, inputs) with the inputs of some of the rows at a time, on several threads;
  // `first` is the place of the first in `rows`.
  void encode_pieces(const Table& table, const std::vector<int64_t>& rows,
                     const std::function<void(int64_t, std::span<const float>)>& use) const;
  Tensor targets_of(const Table& table, const std::vector<int64_t>& rows) const;
  DatasetPtr dataset(const Tensors& rows) const;

  // As text: what `save` writes.
  std::string text() const;
  // As a file. Reading throws an Error of kind corrupt or not_found.
  void save(const std::filesystem::path& path) const;
  static std::shared_ptr<const TableEncoder> load(const std::filesystem::path& path);
  // The same for the text of such a file; `where` stands for it in messages.
  static std::shared_ptr<const TableEncoder> parse(const std::string& text,
                                                   const std::string& where);

  // Raw rows of another file, whose columns are found by name, in any order. Any thread.
  class Rows {
   public:
    // Borrows the encoder. Throws if a column is missing.
    Rows(const TableEncoder& encoder, const std::vector<std::string>& columns,
         const std::string& file);
    // Writes the inputs of a row, `width()` of them, and notes names that are new.
    void encode(std::span<const std::string_view> fields, int64_t line, float* to,
                UnseenNames& unseen) const;

   private:
    const TableEncoder& encoder_;
    std::string file_;
    std::vector<size_t> places_;  // of the features among the fields
  };

 private:
  TableEncoder() = default;
  void learn_target(const Table& table, const std::vector<int64_t>& rows,
                    const TableOptions& options);
  void check_width(const std::string& table, size_t rows) const;

  std::vector<TableFeature> features_;
  std::string target_;
  bool classes_ = false;
  std::vector<std::string> class_names_;
  double offset_ = 0, scale_ = 1;
};

}  // namespace artel::data
