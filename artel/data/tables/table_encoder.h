// Encodes the columns of a table as inputs and targets of samples. Learned from the training rows
// and stored with a run.
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

#include "artel/data/dataset.h"
#include "artel/data/tables/csv.h"
#include "artel/data/tables/table_feature.h"
#include "artel/data/tables/unseen_names.h"

namespace artel::data {

enum class Task {
  automatic,  // classes if the target is categorical or has at most 20 distinct whole numbers
  classes,
  values,
};

struct TableOptions {
  std::string target = {};  // column name; "" means the last column
  Task task = Task::automatic;
  std::vector<std::string> ignore = {};       // columns to omit
  std::vector<std::string> categorical = {};  // numeric columns to treat as names
  bool scale_target = true;                   // standardises values of the target
  bool decimal_comma = false;                 // reads 1,5 as 1.5
};

// Only results are rounded to f32, so large numbers with small differences, such as timestamps,
// keep their precision.
class TableEncoder {
 public:
  // Omits and logs a first column without a name that numbers the rows, as written by pandas.
  // Throws for unknown columns and, without scale_target, if values of the target differ too little
  // for f32.
  TableEncoder(const Table& table, const std::vector<int64_t>& rows, const TableOptions& options);

  const std::vector<TableFeature>& features() const { return features_; }
  int64_t width() const;
  const std::string& target() const { return target_; }
  const std::vector<std::string>& class_names() const { return class_names_; }  // empty for values
  // Target value = offset + scale * network output.
  double target_offset() const { return offset_; }
  double target_scale() const { return scale_; }

  // Encodes rows of a table, whose columns are found by name. Throws if a column or target is
  // missing, a class is unknown, or names would take far more memory than the table.
  DatasetPtr encode(const Table& table, const std::vector<int64_t>& rows) const;
  // Encodes rows as tensors.
  struct Tensors {
    Tensor inputs, targets;
  };
  Tensors encode_rows(const Table& table, const std::vector<int64_t>& rows) const;
  // Calls use(first, inputs) for consecutive parts of the rows, on several threads. `first` is the
  // index of the part's first row in `rows`.
  void encode_pieces(const Table& table, const std::vector<int64_t>& rows,
                     const std::function<void(int64_t, std::span<const float>)>& use) const;
  Tensor targets_of(const Table& table, const std::vector<int64_t>& rows) const;
  DatasetPtr dataset(const Tensors& rows) const;

  // The text that `save` writes.
  std::string text() const;
  // Writes and reads a file. Reading throws an Error of kind corrupt or not_found.
  void save(const std::filesystem::path& path) const;
  static std::shared_ptr<const TableEncoder> load(const std::filesystem::path& path);
  // Parses the text of such a file; `where` names it in messages.
  static std::shared_ptr<const TableEncoder> parse(const std::string& text,
                                                   const std::string& where);

  // Encodes raw rows of another file, whose columns are found by name in any order. Thread safe.
  class Rows {
   public:
    // Borrows the encoder. Throws if a column is missing.
    Rows(const TableEncoder& encoder, const std::vector<std::string>& columns,
         const std::string& file);
    // Writes the `width()` inputs of a row and records unknown names.
    void encode(std::span<const std::string_view> fields, int64_t line, float* to,
                UnseenNames& unseen) const;

   private:
    const TableEncoder& encoder_;
    std::string file_;
    std::vector<size_t> places_;  // index of each feature among the fields
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
