#include "data.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "artel/base/error.h"
#include "artel/data/sets.h"
#include "artel/data/tables/csv_set.h"
#include "artel/data/tables/table_report.h"
#include "interop.h"
#include "weighted.h"

namespace artel::python {
namespace {

thread_local GivenData given;

data::Split open_given(const data::OpenOptions& options) {
  const double fraction = options.test_fraction;
  if (given.table) {
    const data::Split rows = data::table_split(given.table, given.test_table, fraction,
                                               options.seed, options.table, options.learnt);
    if (given.weights.elements() == 0) return rows;
    return {weighted(rows.train, given.weights), weighted(rows.test, {})};
  }
  const data::Split& samples = given.samples;
  require(samples.train != nullptr, ErrorKind::not_found,
          "data.set: the samples of this run were given by a Python program, and are not in its "
          "folder; try run.evaluate(data)");
  return samples.test ? samples : data::split(samples.train, fraction, options.seed);
}

// Throws for targets that no loss can be computed of.
void check_targets(const Tensor& y) {
  if (!is_floating(y.dtype()) || y.elements() == 0) return;
  const Tensor values = y.dtype() == DType::f32 ? y : y.to(DType::f32);
  const auto numbers = values.values<float>();
  for (size_t i = 0; i < numbers.size(); ++i)
    require(std::isfinite(numbers[i]), ErrorKind::numeric,
            "[y] the target of sample {} is {}, expected a finite number; leave such samples out",
            static_cast<int64_t>(i) * y.shape()[0] / y.elements(), numbers[i]);
}

data::DatasetPtr from_arrays(const Array& x, const std::optional<Array>& y, int64_t classes,
                             const std::vector<std::string>& class_names) {
  const Tensor inputs = borrowed(x);
  const Tensor targets = y ? borrowed(*y) : Tensor();
  const nb::gil_scoped_release without_gil;
  require(inputs.shape().rank() > 0 && inputs.shape()[0] > 0, ErrorKind::shape,
          "[x] got an array of shape {}, expected samples as its rows", to_string(inputs.shape()));
  check_targets(targets);
  return data::array_dataset(inputs, targets, classes, class_names);
}

// Compressed sparse rows, as SciPy has them, which are dense only while they are read.
class CompressedRows final : public data::Dataset {
 public:
  CompressedRows(Tensor begins, Tensor columns, Tensor values, int64_t width,
                 data::DatasetPtr targets)
      : begins_(begins.to(DType::i64)),
        columns_(std::move(columns)),
        values_(std::move(values)),
        targets_(std::move(targets)),
        layout_(targets_->layout()) {
    layout_.input = {width};
  }

  int64_t size() const override { return begins_.elements() - 1; }
  const data::SampleLayout& layout() const override { return layout_; }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    auto* const to = reinterpret_cast<float*>(input.data());
    std::fill_n(to, layout_.input.elements(), 0.0f);
    const auto begins = begins_.values<int64_t>();
    const auto columns = columns_.values<int32_t>();
    const auto values = values_.values<float>();
    for (int64_t i = begins[index]; i < begins[index + 1]; ++i) to[columns[i]] += values[i];
    if (!target.empty()) targets_->read_target(index, target);
  }
  void read_target(int64_t index, std::span<std::byte> target) const override {
    targets_->read_target(index, target);
  }

 private:
  Tensor begins_, columns_, values_;
  data::DatasetPtr targets_;  // whose inputs are not read
  data::SampleLayout layout_;
};

// Throws for indices that would be read or written outside of the arrays.
void check_sparse(const Tensor& begins, const Tensor& columns, const Tensor& values,
                  int64_t width) {
  const Tensor counts = begins.to(DType::i64);
  const auto places = counts.values<int64_t>();
  const bool ordered = !places.empty() && places.front() == 0 &&
                       std::is_sorted(places.begin(), places.end()) &&
                       places.back() <= columns.elements() && places.back() <= values.elements();
  const auto numbers = columns.values<int32_t>();
  const bool inside = std::all_of(numbers.begin(), numbers.end(),
                                  [&](int32_t column) { return column >= 0 && column < width; });
  require(ordered && inside, ErrorKind::corrupt,
          "[x] the indices of the sparse matrix are not those of {} columns in rows", width);
}

data::DatasetPtr from_sparse(const Array& begins, const Array& columns, const Array& values,
                             int64_t width, const std::optional<Array>& y, int64_t classes,
                             const std::vector<std::string>& class_names) {
  const Tensor places = borrowed(begins);
  const Tensor indices = borrowed(columns).to(DType::i32),
               numbers = borrowed(values).to(DType::f32);
  check_sparse(places, indices, numbers, width);
  const int64_t rows = places.elements() - 1;
  const Tensor targets = y ? borrowed(*y) : Tensor();
  check_targets(targets);
  return std::make_shared<CompressedRows>(
      places, indices, numbers, width,
      data::tensor_dataset(Tensor({rows, 0}), targets, classes, class_names));
}

// An array as the only row of a data set, so that samples of their own are read as rows of arrays
// are.
Tensor as_row(const Tensor& tensor) {
  std::vector<int64_t> extents = tensor.shape().extents();
  extents.insert(extents.begin(), 1);
  return tensor.reshaped(Shape(std::move(extents)));
}

// A Python object with __len__ and __getitem__, whose samples are pairs of input and target, or
// inputs alone, each like those of sample 0. Threads that read take turns: each holds the GIL.
class PythonSamples final : public data::Dataset {
 public:
  PythonSamples(const nb::object& samples, const std::string& target_column, const Tensor& input,
                const std::optional<Tensor>& target, int64_t classes,
                std::vector<std::string> class_names)
      : samples_(shared(samples)),
        target_column_(target_column),
        size_(static_cast<int64_t>(nb::len(samples))),
        input_shape_(input.shape()),
        input_type_(input.dtype()),
        layout_(data::array_dataset(as_row(input))->layout()) {
    if (!target) return;
    layout_.target_kind = classes > 0 ? data::TargetKind::classes : data::TargetKind::values;
    layout_.target = target->shape();
    layout_.classes = classes;
    layout_.class_names = std::move(class_names);
    if (layout_.target_bytes() <= kMostKeptBytes) {
      kept_.resize(static_cast<size_t>(size_));
      targets_.resize(static_cast<size_t>(size_) * layout_.target_bytes());
    }
  }

  // Takes the targets of all samples, as rows, from a caller that has read them.
  void keep_targets(const Tensor& rows) {
    if (kept_.empty() || rows.elements() != size_ * layout_.target.elements()) return;
    for (int64_t i = 0; i < size_; ++i)
      keep_target(i, rows.rows(i, i + 1).reshaped(layout_.target));
  }

  int64_t size() const override { return size_; }
  const data::SampleLayout& layout() const override { return layout_; }
  void read(int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    with_python(fmt::format("sample {}", index), [&] {
      const nb::object sample = sample_of(index);
      read_input(index, borrowed(nb::cast<Array>(sample[0])), input);
      if (!target.empty()) copy_target(index, borrowed(nb::cast<Array>(sample[1])), target);
    });
  }
  void read_target(int64_t index, std::span<std::byte> target) const override {
    with_python(fmt::format("sample {}", index), [&] {
      const auto read = [&] { return borrowed(nb::cast<Array>(sample_of(index)[1])); };
      if (kept_.empty()) return copy_target(index, read(), target);
      if (!kept_[static_cast<size_t>(index)]) keep_target(index, read());
      std::ranges::copy(kept_target(index), target.begin());
    });
  }

 private:
  // Targets up to this size, such as classes, are read once: a split by classes needs all of them.
  static constexpr size_t kMostKeptBytes = 64;

  nb::object sample_of(int64_t index) const {
    return nb::module_::import_("artel._data")
        .attr("sample_of")(*samples_, index, target_column_,
                           layout_.target_kind != data::TargetKind::none);
  }

  std::span<std::byte> kept_target(int64_t index) const {
    const size_t bytes = layout_.target_bytes();
    return std::span(targets_).subspan(static_cast<size_t>(index) * bytes, bytes);
  }

  void keep_target(int64_t index, const Tensor& target) const {
    copy_target(index, target, kept_target(index));
    kept_[static_cast<size_t>(index)] = true;
  }

  static void check_shape(int64_t index, const char* what, const Tensor& tensor,
                          const Shape& shape) {
    require(tensor.shape() == shape, ErrorKind::shape,
            "[sample {}] its {} has the shape {}, that of sample 0 has {}", index, what,
            to_string(tensor.shape()), to_string(shape));
  }

  void read_input(int64_t index, const Tensor& tensor, std::span<std::byte> to) const {
    check_shape(index, "input", tensor, input_shape_);
    const DType type = tensor.dtype();
    const bool fits = type == input_type_ || is_floating(input_type_) ||
                      (data::is_token_type(type) && data::is_token_type(input_type_));
    require(fits, ErrorKind::invalid_argument,
            "[sample {}] its input has the type {}, that of sample 0 has {}; give all samples one "
            "type",
            index, to_string(type), to_string(input_type_));
    data::array_dataset(as_row(type == input_type_ ? tensor : tensor.to(input_type_)))
        ->read(0, to, {});
  }

  void copy_target(int64_t index, const Tensor& tensor, std::span<std::byte> to) const {
    check_shape(index, "target", tensor, layout_.target);
    const DType type = layout_.target_type();
    const Tensor values = tensor.dtype() == type ? tensor : tensor.to(type);
    if (type == DType::i32)
      for (const int32_t value : values.values<int32_t>())
        require(value == data::kIgnoredTarget || (value >= 0 && value < layout_.classes),
                ErrorKind::invalid_argument, "[sample {}] its class is {}, expected one below {}",
                index, value, layout_.classes);
    else
      for (const float value : values.values<float>())
        require(std::isfinite(value), ErrorKind::numeric,
                "[sample {}] its target is {}, expected a finite number; leave such samples out",
                index, value);
    std::memcpy(to.data(), values.raw(), to.size());
  }

  std::shared_ptr<nb::object> samples_;
  std::string target_column_;
  int64_t size_;
  Shape input_shape_;
  DType input_type_;
  data::SampleLayout layout_;
  // The GIL guards the targets that have been read.
  mutable std::vector<bool> kept_;  // empty if the targets are too large
  mutable std::vector<std::byte> targets_;
};

data::DatasetPtr from_object(const nb::object& samples, const std::string& target_column,
                             const Array& input, const std::optional<Array>& target,
                             int64_t classes, const std::vector<std::string>& class_names,
                             const std::optional<Array>& targets) {
  const auto made = std::make_shared<PythonSamples>(
      samples, target_column, borrowed(input),
      target ? std::optional(borrowed(*target)) : std::nullopt, classes, class_names);
  if (targets) made->keep_targets(borrowed(*targets));
  return made;
}

// A column of numbers, NaN where missing; or, with names, of places among these, -1 where missing.
void add_column(data::Table& table, const std::string& name, const Array& values,
                const std::vector<std::string>& names) {
  const Tensor tensor = borrowed(values);
  require(tensor.shape() == Shape{table.rows}, ErrorKind::shape,
          "[{}] got {} values, expected {}, one for each row", name, tensor.elements(), table.rows);
  data::Column column = {.name = name, .categorical = tensor.dtype() == DType::i32};
  if (column.categorical) {
    for (const int32_t code : tensor.values<int32_t>())
      require(code >= -1 && code < std::ssize(names), ErrorKind::corrupt,
              "[{}] got the code {} of a name, expected one below {}", name, code, names.size());
    column.codes.append(tensor.values<int32_t>());
    column.categories = names;
  } else {
    const Tensor numbers = tensor.to(DType::f64);
    for (const double number : numbers.values<double>())
      require(!std::isinf(number), ErrorKind::numeric, "[{}] has an infinite number", name);
    column.numbers.append(numbers.values<double>());
  }
  table.columns.push_back(std::move(column));
}

nb::list describe(const data::Table& table, const std::string& target) {
  nb::list rows;
  for (const data::ColumnReport& column : data::describe_columns(table, {.target = target}))
    rows.append(
        nb::make_tuple(column.name, column.use, column.missing, column.content, column.warning));
  return rows;
}

}  // namespace

GivenDataScope::GivenDataScope(GivenData data) : before_(std::exchange(given, std::move(data))) {}
GivenDataScope::~GivenDataScope() { given = std::move(before_); }

void add_data(nb::module_& module) {
  data::register_dataset(kGivenSet, open_given);
  nb::class_<data::Dataset>(module, "Dataset", "Samples that a network is trained or tested on.")
      .def("__len__", &data::Dataset::size)
      .def_prop_ro(
          "input_shape",
          [](const data::Dataset& set) {
            return nb::tuple(nb::cast(set.layout().input.extents()));
          },
          "Shape of one input.")
      .def_prop_ro(
          "classes", [](const data::Dataset& set) { return set.layout().classes; },
          "Number of classes; 0 for values.");
  nb::class_<data::Table>(module, "Table", "Columns of numbers and names.")
      .def("__init__", [](data::Table* table, const std::string& name,
                          int64_t rows) { new (table) data::Table{.name = name, .rows = rows}; })
      .def("__len__", [](const data::Table& table) { return table.rows; })
      .def("add", add_column, nb::arg("name"), nb::arg("values"),
           nb::arg("names") = std::vector<std::string>())
      .def("describe", describe, nb::arg("target") = "");
  const auto none = nb::none();
  module.def("from_arrays", from_arrays, nb::arg("x"), nb::arg("y") = none, nb::arg("classes") = 0,
             nb::arg("class_names") = std::vector<std::string>());
  module.def("from_sparse", from_sparse, nb::arg("begins"), nb::arg("columns"), nb::arg("values"),
             nb::arg("width"), nb::arg("y") = none, nb::arg("classes") = 0,
             nb::arg("class_names") = std::vector<std::string>());
  module.def(
      "weighted",
      [](const data::DatasetPtr& samples, const std::optional<Array>& weights) {
        return weighted(samples, weights ? borrowed(*weights) : Tensor());
      },
      nb::arg("samples"), nb::arg("weights") = none);
  module.def("from_object", from_object, nb::arg("samples"), nb::arg("target_column"),
             nb::arg("input"), nb::arg("target") = none, nb::arg("classes") = 0,
             nb::arg("class_names") = std::vector<std::string>(), nb::arg("targets") = none);
  module.def(
      "as_numpy", [](const Array& array) { return to_numpy(borrowed(array)); }, nb::arg("array"),
      "A DLPack array as a NumPy array that shares its memory; bf16 is converted to f32.");
}

}  // namespace artel::python
