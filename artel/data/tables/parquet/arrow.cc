#include <arrow/api.h>
#include <arrow/csv/writer.h>
#include <arrow/io/file.h>
#include <arrow/io/memory.h>
#include <arrow/ipc/writer.h>
#include <parquet/arrow/reader.h>
#include <parquet/exception.h>
#include <unistd.h>

#include "artel/base/error.h"
#include "artel/data/fetch.h"
#include "artel/data/tables/parquet.h"

namespace artel::data {
namespace {

namespace fs = std::filesystem;

void check(const arrow::Status& status, const std::string& file) {
  require(status.ok(), ErrorKind::corrupt, "[{}] {}", file, status.message());
}

template <typename T>
T value_of(arrow::Result<T> result, const std::string& file) {
  check(result.status(), file);
  return std::move(result).ValueUnsafe();
}

// Older versions of Arrow return a status, and the rows by pointer.
template <typename Reader>
std::shared_ptr<arrow::Table> read_group(Reader& reader, int group, const std::string& file) {
  if constexpr (requires { reader.ReadRowGroup(group).status(); }) {
    return value_of(reader.ReadRowGroup(group), file);
  } else {
    std::shared_ptr<arrow::Table> rows;
    check(reader.ReadRowGroup(group, &rows), file);
    return rows;
  }
}

void write_rows(const Bytes& file, const fs::path& text) {
  const auto source = std::make_shared<arrow::io::BufferReader>(std::make_shared<arrow::Buffer>(
      reinterpret_cast<const uint8_t*>(file.data.data()), std::ssize(file.data)));
  parquet::arrow::FileReaderBuilder builder;
  check(builder.Open(source), file.name);
  std::unique_ptr<parquet::arrow::FileReader> reader;
  check(builder.Build(&reader), file.name);
  std::shared_ptr<arrow::Schema> columns;
  check(reader->GetSchema(&columns), file.name);
  const auto sink = value_of(arrow::io::FileOutputStream::Open(text.string()), file.name);
  const auto writer = value_of(arrow::csv::MakeCSVWriter(sink, columns), file.name);
  for (int group = 0; group < reader->num_row_groups(); ++group)
    check(writer->WriteTable(*read_group(*reader, group, file.name)), file.name);
  check(writer->Close(), file.name);
  check(sink->Close(), file.name);
}

}  // namespace

Bytes parquet_as_csv(const Bytes& file) {
  const fs::path folder = data_folder() / "tables";
  std::error_code problem;
  fs::create_directories(folder, problem);
  require(!problem, ErrorKind::io, "[{}] cannot make a folder for tables: {}", folder.string(),
          problem.message());
  std::string name = (folder / "parquet-XXXXXX").string();
  const int descriptor = ::mkstemp(name.data());
  require(descriptor >= 0, ErrorKind::io, "[{}] cannot make a file", folder.string());
  ::close(descriptor);
  // The file is unlinked and exists only while it is mapped.
  const std::shared_ptr<const void> remover(nullptr, [&](const void*) { ::unlink(name.c_str()); });
  try {
    write_rows(file, name);
  } catch (const parquet::ParquetException& error) {
    fail(ErrorKind::corrupt, "[{}] {}", file.name, error.what());
  }
  Bytes text = map_file(name);
  text.name = file.name;
  return text;
}

}  // namespace artel::data
