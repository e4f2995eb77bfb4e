# cmake -DOUT=FILE -DFOLDER=DIR -P embed_texts.cmake: writes a C++ source with the machine files of DIR, for
# artel/plan/machines/known_machines.h.
file(GLOB files ${FOLDER}/*.toml)
list(SORT files)
set(entries "")
foreach(file ${files})
  get_filename_component(name ${file} NAME_WE)
  file(READ ${file} text)
  string(APPEND entries "      {\"${name}\", R\"toml(${text})toml\"},\n")
endforeach()
file(WRITE ${OUT} "#include \"artel/plan/machines/known_machines.h\"

namespace artel::plan {

const std::vector<KnownMachineFile>& known_machine_files() {
  static const std::vector<KnownMachineFile> files = {
${entries}  };
  return files;
}

}  // namespace artel::plan
")
