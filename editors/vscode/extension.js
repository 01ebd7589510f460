// Starts `nyala lsp` for files of Impala, and hands its answers to the editor. Highlighting needs no server.

const vscode = require("vscode");
const { LanguageClient, TransportKind } = require("vscode-languageclient/node");

let client;

async function start() {
  const settings = vscode.workspace.getConfiguration("impala");
  const command = settings.get("command");
  const server = {
    command,
    args: ["lsp", ...settings.get("arguments")],
    transport: TransportKind.stdio,
  };
  client = new LanguageClient("impala", "Impala", server, {
    documentSelector: [{ language: "impala" }],
  });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const choice = await vscode.window.showErrorMessage(
      `\`${command} lsp\` does not start: ${error.message}. Is Nyala installed? The setting impala.command names it.`,
      "Open the setting",
    );
    if (choice) {
      vscode.commands.executeCommand("workbench.action.openSettings", "impala.command");
    }
  }
}

async function stop() {
  const old = client;
  client = undefined;
  await old?.stop();
}

async function restart() {
  await stop();
  await start();
}

exports.activate = async (context) => {
  context.subscriptions.push(
    vscode.commands.registerCommand("impala.restart", restart),
    vscode.workspace.onDidChangeConfiguration((change) => {
      if (change.affectsConfiguration("impala")) {
        restart();
      }
    }),
  );
  await start();
};

exports.deactivate = stop;
